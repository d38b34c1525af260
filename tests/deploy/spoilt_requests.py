"""Valid requests of every method, and ways to spoil them. Needs the generated module of the API."""

import numpy as np

FLOATS = [float(v) for v in (0, -0.0, 1, -3, 0.5, 1e-300, 1e300, 5e-324, "inf", "-inf", "nan", 2**31, 2**53, 2**63, 3600)]
INTEGERS = [0, 1, 2, 3, 4, 7, 8, 255, 4096, 65536, 2**31 - 1, -2**31, 2**32, 2**40, 2**56, 2**62, 2**63 - 1, -2**63, -1]
TEXTS = ["", "a", "b", "c", "x", "y", "s1", "s2", "openblas", "eigen", "reference", "naive", "n" * 600,
         "00000000-00000000000000000000000000000000", "\u20ac"]
KERNELS, TENSORS = "/warpline.v1.KernelService/", "/warpline.v1.TensorService/"


def is_repeated(field):
    """Of a FieldDescriptor. protobuf before 6 has no is_repeated, and 7 has no label."""
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


class Requests:
    """Random valid requests. `ids` are those of resident tensors, of which some may be gone."""

    def __init__(self, api, random):
        self.api, self.random, self.ids, self.regions = api, random, [], []

    def any(self):
        """The path of a method and a list of messages for it: one, but for Put."""
        kind = self.random.choice(["transpose", "gemm", "gemm", "reduce", "run", "run", "create", "put", "get", "drop",
                                   "renew", "list", "open", "info"])
        return getattr(self, kind)()

    def size(self):
        return self.random.choice([0, 1, 1, 2, 3, 4, 5, 8, 17])

    def fill(self, tensor, shape, dtype=12, itemsize=4):
        tensor.data_type = dtype
        tensor.shape.extend(shape)
        if self.ids and self.random.random() < 0.1:
            tensor.resident.id = self.random.choice(self.ids)
        elif self.regions and self.random.random() < 0.1:
            tensor.region.id = self.random.choice(self.regions)
        else:
            tensor.inline = self.random.randbytes(int(np.prod(shape, dtype=np.int64)) * itemsize)

    def sink(self, options, output=""):
        if self.random.random() < 0.3:
            sink = options.sinks.add(output=output)
            if self.regions and self.random.random() < 0.5:
                sink.region.id = self.random.choice(self.regions)
                sink.region.offset = 64 * self.random.randrange(64)
            else:
                sink.resident.ttl_seconds = self.random.choice([0, 60])

    def transpose(self):
        request = self.api.TransposeRequest()
        axes = list(range(self.random.randrange(1, 4)))
        self.fill(request.x, [self.size() for _ in axes])
        self.random.shuffle(axes)
        request.perm.extend(axes)
        self.sink(request.options)
        return KERNELS + "Transpose", [request]

    def gemm(self):
        request = self.api.GemmRequest()
        m, n, k = self.size(), self.size(), self.size()
        self.fill(request.a, [m, k])
        self.fill(request.b, [k, n])
        if self.random.random() < 0.3:
            self.fill(request.c, [m, n])
            request.beta = 2
        self.sink(request.options)
        return KERNELS + "Gemm", [request]

    def reduce(self):
        request = self.api.ReduceRequest(op=self.random.randrange(1, 18))
        self.fill(request.x, [self.size(), 1 + self.size()])
        request.axes.extend(self.random.choice([[], [0], [1], [0, 1]]))
        self.sink(request.options)
        return KERNELS + "Reduce", [request]

    def run(self):
        request = self.api.RunRequest()
        side = self.size()
        for name in "ab":
            self.fill(request.inputs.add(name=name).tensor, [side, side])
        request.program.steps.add(name="s1", inputs=["a", "b"]).gemm.alpha = 0.5
        last = "s1"
        for i in range(self.random.randrange(4)):
            step = request.program.steps.add(name=f"t{i}", inputs=[last])
            kind = self.random.randrange(5)
            if kind == 0:
                step.scale.factor = 3
            elif kind == 1:
                step.transpose.perm.extend([1, 0])
            elif kind == 2:
                step.cast.data_type = 13
                step.name = last = f"u{i}"
                break
            elif kind == 3:
                # Subtracts the result so far from "a".
                step.inputs.append("a")
                step.map.nodes.add(op=5, operands=[1, 0])
            else:
                step.inputs.append("a")
                step.add.SetInParent()
            last = step.name
        request.program.outputs.append(last)
        self.sink(request.options, last)
        return KERNELS + "Run", [request]

    def an_id(self):
        return self.random.choice(self.ids) if self.ids else "gone"

    def create(self):
        return TENSORS + "Create", [self.api.CreateRequest(data_type=12, shape=[self.size(), 1 + self.size()])]

    def put(self):
        tensor, at, messages = self.an_id(), 0, []
        for _ in range(self.random.randrange(1, 4)):
            data = self.random.randbytes(self.random.choice([0, 4, 16, 64]))
            messages.append(self.api.PutRequest(id=tensor, offset=at, data=data))
            at += len(data)
        return TENSORS + "Put", messages

    def get(self):
        return TENSORS + "Get", [self.api.GetRequest(id=self.an_id(), length=self.random.choice([0, 4]))]

    def drop(self):
        return TENSORS + "Drop", [self.api.DropRequest(id=self.an_id())]

    def renew(self):
        return TENSORS + "Renew", [self.api.RenewRequest(id=self.an_id(), ttl_seconds=self.random.choice([0, 60]))]

    def list(self):
        return TENSORS + "List", [self.api.ListRequest(page_size=self.random.randrange(4))]

    def open(self):
        return "/warpline.v1.RegionService/Open", [self.api.OpenRequest(size_bytes=4096 * self.random.choice([1, 1, 1, 0, 2]))]

    def info(self):
        return "/warpline.v1.InfoService/GetInfo", [self.api.GetInfoRequest()]


def within(message):
    """The message and all messages in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if is_repeated(field) else [value]:
            found += within(part)
    return found


def value(random, field):
    """Any value of the type of a field."""
    kinds = field.CPPTYPE_INT32, field.CPPTYPE_INT64
    if field.cpp_type in kinds:
        number = random.choice(INTEGERS) if random.random() < 0.5 else random.randrange(9)
        return number if field.cpp_type == field.CPPTYPE_INT64 else max(-2**31, min(number, 2**31 - 1))
    if field.cpp_type == field.CPPTYPE_DOUBLE:
        return random.choice(FLOATS)
    if field.cpp_type == field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if field.cpp_type == field.CPPTYPE_ENUM:
        return random.choice([-1, 99, 2**31 - 1]) if random.random() < 0.1 else random.randrange(20)
    if field.type == field.TYPE_BYTES:
        return random.randbytes(random.randrange(70))
    return random.choice(TEXTS)


def change_field(random, root):
    """Sets, clears, adds, removes or copies one field of the message or of one in it."""
    message = random.choice(within(root))
    if not message.DESCRIPTOR.fields:
        return
    field = random.choice(message.DESCRIPTOR.fields)
    if random.random() < 0.15:
        message.ClearField(field.name)
    elif is_repeated(field):
        items = getattr(message, field.name)
        if len(items) > 0 and random.random() < 0.4:
            del items[random.randrange(len(items))]
        elif field.message_type is not None:
            added = items.add()
            if len(items) > 1 and random.random() < 0.7:
                added.CopyFrom(items[random.randrange(len(items) - 1)])
        elif len(items) > 0 and random.random() < 0.5:
            items[random.randrange(len(items))] = value(random, field)
        else:
            items.append(value(random, field))
    elif field.message_type is not None:
        others = [m for m in within(root) if m.DESCRIPTOR is field.message_type]
        part = getattr(message, field.name)
        part.SetInParent()
        if others:
            copy = random.choice(others).SerializeToString()
            part.ParseFromString(copy)
    else:
        setattr(message, field.name, value(random, field))


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def spoil_bytes(random, data):
    """What protobuf would not write: cut off, changed, repeated, with lengths beyond the end, with fields nobody knows."""
    kind, at = random.randrange(9), random.randrange(len(data) + 1)
    if kind == 0:
        return data[:at]
    if kind == 1 and data:
        at = random.randrange(len(data))
        return data[:at] + bytes([random.randrange(256)]) + data[at + 1:]
    if kind == 2:
        return data + data  # every field twice
    if kind == 3:
        end = min(len(data), at + random.randrange(1, 40))
        return data[:end] + data[at:]
    if kind == 4:  # a huge length
        length = random.choice([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, len(data), len(data) + 1])
        return data[:at] + varint(random.randrange(1, 16) << 3 | 2) + varint(length) + data[at:]
    if kind == 5:  # groups, deeper than any reader goes
        return data[:at] + bytes([0x1b]) * random.choice([1, 3, 99, 101, 5000]) + data[at:]
    if kind == 6:  # an unknown field of any wire type
        return data[:at] + varint(random.randrange(2**29) << 3 | random.randrange(8)) + random.randbytes(4) + data[at:]
    if kind == 7:  # varints that do not end
        return data[:at] + b"\xff" * random.choice([5, 10, 11, 40]) + data[at:]
    return random.randbytes(random.randrange(200))


def spoil(random, message):
    """The bytes of a changed message: by its fields, on the wire, or both."""
    kind = random.random()
    if kind < 0.7:
        for _ in range(random.randrange(1, 4)):
            change_field(random, message)
    data = message.SerializePartialToString()
    return spoil_bytes(random, data) if kind > 0.45 else data

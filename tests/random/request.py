"""The messages of a program: its Run request, and tensors in them."""

import numpy as np

from element_types import BY_NUMBER, TYPES, api_name, encoded


def rows_of(given):
    """The bytes of an input, with the padding between its rows."""
    data, t = np.ascontiguousarray(given.data), TYPES[given.type]
    if given.row_stride <= data.shape[-1]:
        return encoded(given.type, data, given.odd_bools)
    rows = data.reshape(-1, data.shape[-1])
    content = np.frombuffer(encoded(given.type, rows, given.odd_bools), np.uint8).reshape(len(rows), -1)
    # The bytes between the rows are NaN in all floating-point types.
    padded = np.full((len(rows), given.row_stride * t.size), 0xff, np.uint8)
    padded[:, :content.shape[1]] = content
    end = padded.size if given.tail else padded.size - padded.shape[1] + content.shape[1]
    return padded.tobytes()[:end]


def fill_tensor(tensor, given, resident_id=None):
    """Fills a message Tensor with an input."""
    if resident_id is not None:
        tensor.resident.id = resident_id
        return
    tensor.data_type = TYPES[given.type].number
    tensor.shape.extend(given.data.shape)
    tensor.row_stride = given.row_stride
    tensor.inline = rows_of(given)


def step_message(api, step):
    message = api.Step(name=step.name, inputs=step.inputs, variant=step.variant)
    operation = getattr(message, step.kind)
    operation.CopyFrom(type(operation)(**step.fields))
    operation.SetInParent()  # also if no field is given
    return message


def run_request(api, program, resident_ids):
    """The Run request of a program. `resident_ids` are those of its resident inputs, by name."""
    request = api.RunRequest()
    for name, given in program.inputs.items():
        fill_tensor(request.inputs.add(name=name).tensor, given, resident_ids.get(name))
    request.program.steps.extend(step_message(api, step) for step in program.steps)
    request.program.outputs.extend(program.outputs)
    for name, place in program.sinks.items():
        getattr(request.options.sinks.add(output=name), place).SetInParent()
    request.options.reproducible, request.options.report = program.reproducible, program.report
    if program.free_after:
        request.options.free_after.extend(resident_ids.values())
    return request


def copy_request(api, given):
    """A request whose result is the input itself, as a resident tensor."""
    request = api.RunRequest()
    fill_tensor(request.inputs.add(name="x").tensor, given)
    request.program.steps.add(name="y", inputs=["x"]).slice.SetInParent()
    request.program.outputs.append("y")
    request.options.sinks.add(output="y").resident.SetInParent()
    return request


def create_request(api, given):
    return api.CreateRequest(data_type=api_name(given.type), shape=given.data.shape)


def type_name(number):
    return BY_NUMBER[number].name if number in BY_NUMBER else f"type {number}"

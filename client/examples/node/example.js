// warpline from Node: a transpose, a product, a program, and a request that is refused. Nothing is generated:
// the .proto file is read when this starts. Every result is checked; the exit code is 1 when one is wrong.
//
//   npm ci && node example.js 127.0.0.1:50051
//   WARPLINE_TLS_CA=ca.crt node example.js gpu-node:50051
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const definition = protoLoader.loadSync(
  ["warpline/v1/warpline.proto", "google/rpc/status.proto", "google/rpc/error_details.proto"],
  {
    includeDirs: [fileURLToPath(new URL("../../../proto", import.meta.url))],
    keepCase: true, // the names of the .proto file, which are those in errors too
    longs: Number, // sizes: exact up to 2^53
    enums: String,
    defaults: true,
  },
);
const { KernelService } = grpc.loadPackageDefinition(definition).warpline.v1;

const address = process.argv[2] ?? "127.0.0.1:50051";
/** TLS if $WARPLINE_TLS_CA names a file, with a certificate of our own if the other two variables do. */
function credentials() {
  const [ca, cert, key] = ["CA", "CERT", "KEY"].map((name) => {
    const path = process.env[`WARPLINE_TLS_${name}`];
    return path ? readFileSync(path) : null;
  });
  return ca ? grpc.credentials.createSsl(ca, key, cert) : grpc.credentials.createInsecure();
}

const client = new KernelService(address, credentials(), {
  // Of responses; 4 MiB unless set. Those to the server are limited by the server alone.
  "grpc.max_receive_message_length": -1,
});

/** Calls a method; fails with grpc-js's error, which has code, details (the text) and metadata. */
function call(method, request) {
  const metadata = new grpc.Metadata();
  metadata.set("x-request-id", randomUUID()); // comes back in the response or the error; the server logs it
  const deadline = Date.now() + 30_000;
  return new Promise((resolve, reject) =>
    client[method](request, metadata, { deadline }, (error, response) =>
      error ? reject(error) : resolve(response),
    ),
  );
}

/** The fields that the server complains about: google.rpc.BadRequest in the details of an error. */
function fieldViolations(error) {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!bytes) return [];
  return definition["google.rpc.Status"]
    .deserialize(bytes)
    .details.filter(({ type_url }) => type_url === "type.googleapis.com/google.rpc.BadRequest")
    .flatMap(({ value }) => definition["google.rpc.BadRequest"].deserialize(value).field_violations);
}

/** A dense tensor over the memory of a typed array, not a copy: little-endian wherever Node runs but on s390x. */
function tensor(data_type, shape, values) {
  return { data_type, shape, inline: Buffer.from(values.buffer, values.byteOffset, values.byteLength) };
}

/** The elements of a tensor: a view of the message where the bytes lie aligned in it, else a copy. */
function elements(ArrayType, { inline }) {
  const bytes = inline.byteOffset % ArrayType.BYTES_PER_ELEMENT === 0 ? inline : Uint8Array.from(inline);
  return new ArrayType(bytes.buffer, bytes.byteOffset, bytes.byteLength / ArrayType.BYTES_PER_ELEMENT);
}

/** Small integers: their products and sums are exact in f32, so results can be compared bit for bit. */
const integers = (count, seed) => Float32Array.from({ length: count }, (_, i) => ((i * 31 + seed) % 17) - 8);

const [m, k, n] = [96, 64, 48];
const a = integers(m * k, 1);
const b = integers(k * n, 2);
const bias = integers(n, 3);
const product = Float32Array.from({ length: m * n }, (_, at) => {
  const [row, column] = [Math.floor(at / n), at % n];
  let sum = 0;
  for (let i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
  return sum;
});

async function transpose() {
  const { y, execution } = await call("Transpose", { x: tensor("DATA_TYPE_F32", [m, k], a) });
  assert.deepEqual(y.shape, [k, m]);
  assert.deepEqual(elements(Float32Array, y), a.map((_, at) => a[(at % m) * k + Math.floor(at / m)]));
  return execution;
}

async function gemm() {
  const { d, execution } = await call("Gemm", {
    a: tensor("DATA_TYPE_F32", [m, k], a),
    b: tensor("DATA_TYPE_F32", [k, n], b),
    alpha: 2,
  });
  assert.deepEqual(d.shape, [m, n]);
  assert.deepEqual(elements(Float32Array, d), product.map((value) => 2 * value));
  return execution;
}

/** The column of the greatest score in each row. The scores are computed on the server and stay there. */
async function run() {
  const { outputs, execution } = await call("Run", {
    program: {
      steps: [
        { name: "scores", inputs: ["x", "w", "bias"], gemm: { has_bias: true, activation: "ACTIVATION_RELU" } },
        { name: "best", inputs: ["scores"], reduce: { op: "REDUCE_OP_ARGMAX", axes: [1] } },
      ],
      outputs: ["best"],
    },
    inputs: [
      { name: "x", tensor: tensor("DATA_TYPE_F32", [m, k], a) },
      { name: "w", tensor: tensor("DATA_TYPE_F32", [k, n], b) },
      { name: "bias", tensor: tensor("DATA_TYPE_F32", [n], bias) },
    ],
    options: { report: true },
  });
  assert.deepEqual(outputs.map(({ name, tensor: { shape } }) => [name, shape]), [["best", [m]]]);
  const scores = product.map((value, at) => Math.max(value + bias[at % n], 0));
  const want = BigInt64Array.from({ length: m }, (_, i) => {
    const row = scores.subarray(i * n, (i + 1) * n);
    return BigInt(row.indexOf(Math.max(...row)));
  });
  assert.deepEqual(elements(BigInt64Array, outputs[0].tensor), want);
  return execution;
}

/** A mistake, to show what its error says. */
async function refused() {
  const x = tensor("DATA_TYPE_F32", [m, k], a);
  const error = await call("Transpose", { x, perm: [0, 0] }).catch((e) => e);
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  assert.deepEqual(fieldViolations(error).map(({ field }) => field), ["perm"]);
  return error;
}

/** Code, text and fields of an error in one line. */
function describe(error) {
  if (error.code === undefined || !(error.code in grpc.status)) return error.stack;
  const fields = fieldViolations(error).map(({ field }) => `, field ${field}`);
  return `${grpc.status[error.code]}${fields.join("")}: ${error.details}`;
}

try {
  for (const step of [transpose, gemm, run]) {
    const { variants, backend, stage_times } = await step();
    const device_us = (stage_times.device * 1e6).toFixed(0);
    console.log(`${step.name}: ok, ${variants.join(" + ")} on ${backend}, ${device_us} us`);
  }
  console.log(`refused, as it should be: ${describe(await refused())}`);
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
} finally {
  client.close();
}

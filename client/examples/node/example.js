// warpline from Node: a transpose, a product, a program, and a request that is refused. Every result is checked; the exit code is 1 when one is wrong.
//
//   npm ci && node example.js 127.0.0.1:50051
//   WARPLINE_TLS_CA=ca.crt node example.js gpu-node:50051
import assert from "node:assert/strict";
import grpc from "@grpc/grpc-js";
import * as warpline from "./warpline.js";

const { describe, elements, fieldViolations, tensor } = warpline;
const client = warpline.connect(process.argv[2] ?? "127.0.0.1:50051");
const call = (method, request) => warpline.call(client, method, request);

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

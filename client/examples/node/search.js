// Exact nearest neighbours from Node: a library of vectors is a tensor on the server, and each batch of queries
// is one request, of the program ../vector_search/search.json.
//
//   id=$(warpline put library.npy --ttl 1h)        # f32, of shape [vectors, dimensions]
//   echo '[[0.1, -0.2, 0.3]]' | node search.js 127.0.0.1:50051 "$id" 10
//
// Standard input: an array of queries. Output: for each query the places of the closest vectors, and the scores.
import { readFileSync } from "node:fs";
import { call, connect, describe, elements, tensor } from "./warpline.js";

const [address, id, k = "10"] = process.argv.slice(2);
if (!id) {
  console.error("usage: node search.js ADDRESS ID [K] < QUERIES.json");
  process.exit(2);
}
const program = JSON.parse(readFileSync(new URL("../vector_search/search.json", import.meta.url)));
program.steps.find(({ topk }) => topk).topk.k = Number(k);
const queries = JSON.parse(readFileSync(0, "utf8"));
const shape = [queries.length, queries[0].length];

const client = connect(address);
try {
  const { outputs } = await call(client, "Run", {
    program,
    inputs: [
      { name: "queries", tensor: tensor("DATA_TYPE_F32", shape, Float32Array.from(queries.flat())) },
      { name: "library", tensor: { resident: { id } } },
    ],
  });
  const [scores, places] = outputs.map((output) => output.tensor);
  const row = (ArrayType, of, i) => Array.from(elements(ArrayType, of), Number).slice(i * k, (i + 1) * k);
  queries.forEach((_, i) =>
    console.log(JSON.stringify({ places: row(BigInt64Array, places, i), scores: row(Float32Array, scores, i) })),
  );
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
} finally {
  client.close();
}

// What the examples share: a client of warpline in plain gRPC. Nothing is generated: the .proto file is read when
// this starts.
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

/** TLS if $WARPLINE_TLS_CA names a file, with a certificate of our own if the other two variables do. */
function credentials() {
  const [ca, cert, key] = ["CA", "CERT", "KEY"].map((name) => {
    const path = process.env[`WARPLINE_TLS_${name}`];
    return path ? readFileSync(path) : null;
  });
  return ca ? grpc.credentials.createSsl(ca, key, cert) : grpc.credentials.createInsecure();
}

/** A client of the server at an address, such as 127.0.0.1:50051. */
export const connect = (address) =>
  new KernelService(address, credentials(), {
    // Of responses; 4 MiB unless set. Those to the server are limited by the server alone.
    "grpc.max_receive_message_length": -1,
  });

/** Calls a method; fails with grpc-js's error, which has code, details (the text) and metadata. */
export function call(client, method, request) {
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
export function fieldViolations(error) {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!bytes) return [];
  return definition["google.rpc.Status"]
    .deserialize(bytes)
    .details.filter(({ type_url }) => type_url === "type.googleapis.com/google.rpc.BadRequest")
    .flatMap(({ value }) => definition["google.rpc.BadRequest"].deserialize(value).field_violations);
}

/** A dense tensor over the memory of a typed array, not a copy: little-endian wherever Node runs but on s390x. */
export function tensor(data_type, shape, values) {
  return { data_type, shape, inline: Buffer.from(values.buffer, values.byteOffset, values.byteLength) };
}

/** The elements of a tensor: a view of the message where the bytes lie aligned in it, else a copy. */
export function elements(ArrayType, { inline }) {
  const bytes = inline.byteOffset % ArrayType.BYTES_PER_ELEMENT === 0 ? inline : Uint8Array.from(inline);
  return new ArrayType(bytes.buffer, bytes.byteOffset, bytes.byteLength / ArrayType.BYTES_PER_ELEMENT);
}

/** Code, text and fields of an error in one line. */
export function describe(error) {
  if (error.code === undefined || !(error.code in grpc.status)) return error.stack;
  const fields = fieldViolations(error).map(({ field }) => `, field ${field}`);
  return `${grpc.status[error.code]}${fields.join("")}: ${error.details}`;
}

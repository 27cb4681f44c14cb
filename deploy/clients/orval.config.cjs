// How orval generates its client.
module.exports = {
  api: {
    input: "openapi.json",
    output: {
      target: "src/orval/api.ts",
      client: "fetch",
      override: {
        // Where the API is, the key, and how an answer is read.
        mutator: { path: "src/orval_fetch.ts", name: "call" },
        // Of several kinds of bodies orval takes the first; this one it can send.
        operations: { uploadFile: { contentType: { exclude: ["application/octet-stream"] } } },
      },
    },
  },
};

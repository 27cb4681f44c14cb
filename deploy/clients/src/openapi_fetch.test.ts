// openapi-fetch, with the types of openapi-typescript.

import assert from "node:assert/strict";
import { test } from "node:test";
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi_fetch/api.js";
import { baseUrl, flow, key, run, text, tokenOf } from "./given.js";

type Status = components["schemas"]["PaymentStatus"];

const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const name = `openapi-fetch-${run}`;
// Nobody may pay the invoice before it is looked at, so the tests follow one another.
let invoice: { id: string; pdf_url: string };

test("creates a client and an invoice", async () => {
  const client = await api.POST("/v1/clients", { body: { company_name: name, type: "company" } });
  assert.equal(client.response.status, 201, JSON.stringify(client.error));
  const made = await api.POST("/v1/invoices", {
    params: { header: { "Idempotency-Key": name } },
    body: { client_id: client.data!.data.id, title: "Bread", generation_mode: "final", rows: [{ name: "Bread", quantity: 2, unit_price: "1.50", vat_rate: "9" }] },
  });
  assert.equal(made.response.status, 201, JSON.stringify(made.error));
  const total: number | null = made.data!.data.total_excl_vat;
  assert.equal(total, 3);
  invoice = made.data!.data;
});

test("tries a request without effect", async () => {
  const tried = await api.POST("/v1/clients", { params: { header: { "Dry-Run": true } }, body: { company_name: name } });
  assert.equal(tried.response.headers.get("dry-run"), "true");
});

test("lists with filters", async () => {
  const found = await api.GET("/v1/clients", { params: { query: { search: name, per_page: 5, created_from: "2020-01-01" } } });
  assert.equal(found.data!.meta.total, 1);
  const status: Status = "paid";
  const payments = await api.GET("/v1/payments", { params: { query: { status, client_id: found.data!.data[0]!.id } } });
  assert.deepEqual(payments.data!.data, []);
});

test("gets typed faults", async () => {
  const { data, error, response } = await api.POST("/v1/clients", { body: { company_name: name, email: "nobody" } });
  assert.equal(data, undefined);
  assert.equal(response.status, 422);
  const fault: components["schemas"]["FieldFault"] = error!.errors![0]!;
  assert.deepEqual([fault.pointer, fault.code], ["/email", "bad_email"]);
});

test("reads a PDF", async () => {
  const path = { token: tokenOf(invoice.pdf_url) };
  const { data } = await api.GET("/documents/{token}/pdf", { params: { path }, parseAs: "arrayBuffer" });
  assert.equal(Buffer.from(data!).subarray(0, 5).toString(), "%PDF-");
});

test("reads an e-invoice", async () => {
  const { data, error } = await api.GET("/v1/invoices/{id}/ubl", { params: { path: { id: invoice.id } }, parseAs: "text" });
  assert.match(data ?? JSON.stringify(error), /^<\?xml/);
});

test("reads all clients as CSV", async () => {
  const { data } = await api.GET("/v1/clients/export", { params: { query: { search: name } }, parseAs: "text" });
  assert.equal(data!.trim().split("\n").length, 2);
});

test("uploads a form and bytes", async () => {
  const form = await api.POST("/v1/files", {
    params: { query: { name: "form.txt" } },
    // The types have a text for a file.
    body: { file: text("of a form") as unknown as string },
    bodySerializer(body) {
      const form = new FormData();
      for (const [name, value] of Object.entries(body)) form.append(name, value as string | Blob);
      return form;
    },
  });
  assert.equal(form.response.status, 201, JSON.stringify(form.error));
  const bytes = await api.POST("/v1/files", {
    params: { query: { name: "bytes.txt" } },
    headers: { "Content-Type": "application/octet-stream" },
    body: text("bytes") as unknown as string,
    bodySerializer: (body) => body as unknown as BodyInit,
  });
  assert.equal(bytes.data!.data.meta.size, 5);
});

test("writes a flow as YAML and reads it", async () => {
  const made = await api.POST("/v1/automation/flows", {
    headers: { "Content-Type": "application/yaml" },
    body: flow(name),
    bodySerializer: (body) => body as string,
  });
  assert.equal(made.response.status, 201, JSON.stringify(made.error));
  const path = { id: made.data!.data.id };
  const read = await api.GET("/v1/automation/flows/{id}/definition", { params: { path }, parseAs: "text" });
  assert.ok((read.data as string).includes(name));
});

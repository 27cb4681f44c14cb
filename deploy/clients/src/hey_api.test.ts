// The client of @hey-api/openapi-ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as api from "./hey_api/index.js";
import { client as connection } from "./hey_api/client.gen.js";
import { formDataBodySerializer } from "./hey_api/client/index.js";
import { baseUrl, flow, key, run, text, tokenOf } from "./given.js";

connection.setConfig({ baseUrl, auth: key });
const name = `hey-api-${run}`;
let invoice: { id: string; pdf_url: string };

test("creates a client and an invoice", async () => {
  const client = await api.createClient({ body: { company_name: name, type: "company" } });
  assert.equal(client.response.status, 201, JSON.stringify(client.error));
  const made = await api.createInvoice({
    headers: { "Idempotency-Key": name },
    body: { client_id: client.data!.data.id, title: "Bread", generation_mode: "final", rows: [{ name: "Bread", quantity: 2, unit_price: "1.50", vat_rate: "9" }] },
  });
  assert.equal(made.response.status, 201, JSON.stringify(made.error));
  const total: number | null = made.data!.data.total_excl_vat;
  assert.equal(total, 3);
  invoice = made.data!.data;
});

test("tries a request without effect", async () => {
  const tried = await api.createClient({ headers: { "Dry-Run": true }, body: { company_name: name } });
  assert.equal(tried.response.headers.get("dry-run"), "true");
});

test("lists with filters", async () => {
  const found = await api.listClients({ query: { search: name, per_page: 5, created_from: "2020-01-01" } });
  assert.equal(found.data!.meta.total, 1);
  const status: api.PaymentStatus = "paid";
  const payments = await api.listAllPayments({ query: { status, client_id: found.data!.data[0]!.id } });
  assert.deepEqual(payments.data!.data, []);
});

test("gets typed faults", async () => {
  const { data, error, response } = await api.createClient({ body: { company_name: name, email: "nobody" } });
  assert.equal(data, undefined);
  assert.equal(response.status, 422);
  const fault: api.FieldFault = error!.errors![0]!;
  assert.deepEqual([fault.pointer, fault.code], ["/email", "bad_email"]);
});

test("reads a PDF", async () => {
  const { data } = await api.downloadPdf({ path: { token: tokenOf(invoice.pdf_url) } });
  const file: Blob = data!;
  assert.equal((await file.text()).slice(0, 5), "%PDF-");
});

test("reads an e-invoice", async () => {
  const { data, error } = await api.getInvoiceUbl({ path: { id: invoice.id } });
  assert.match(data ? await data.text() : JSON.stringify(error), /^<\?xml/);
});

test("reads all clients as CSV", async () => {
  const { data } = await api.exportClients({ query: { search: name } });
  const table: string = data!;
  assert.equal(table.trim().split("\n").length, 2);
});

test("uploads a form and bytes", async () => {
  const form = await api.uploadFile({
    ...formDataBodySerializer,
    // Its types are those of the other kind of body.
    headers: { "Content-Type": null } as never,
    query: { name: "form.txt" },
    body: { file: text("of a form") } as never,
  });
  assert.equal(form.response.status, 201, JSON.stringify(form.error));
  const bytes = await api.uploadFile({ query: { name: "bytes.txt" }, body: text("bytes") });
  assert.equal(bytes.data!.data.meta.size, 5);
});

test("writes a flow as YAML and reads it", async () => {
  const made = await api.createFlow({
    headers: { "Content-Type": "application/yaml" } as never,
    bodySerializer: (body: unknown) => body,
    body: flow(name) as unknown as api.JsonObject,
  });
  assert.equal(made.response.status, 201, JSON.stringify(made.error));
  const read = await api.downloadFlowDefinition({ path: { id: made.data!.data.id }, parseAs: "text" });
  assert.ok((read.data as string).includes(name));
});

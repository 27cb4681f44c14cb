// The client of orval. It has no raw upload: orval sends the first kind of body that it can.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as api from "./orval/api.js";
import { run, text, tokenOf } from "./given.js";

const name = `orval-${run}`;
let invoice: { id: string; pdf_url: string };

test("creates a client and an invoice", async () => {
  const client = await api.createClient({ company_name: name, type: api.RelationType.company });
  assert.ok(client.status === 201, JSON.stringify(client.data));
  const made = await api.createInvoice(
    { client_id: client.data.data.id, title: "Bread", generation_mode: "final", rows: [{ name: "Bread", quantity: 2, unit_price: "1.50", vat_rate: "9" }] },
    { headers: { "Content-Type": "application/json", "Idempotency-Key": name } },
  );
  assert.ok(made.status === 201, JSON.stringify(made.data));
  const total: number | null = made.data.data.total_excl_vat;
  assert.equal(total, 3);
  invoice = made.data.data;
});

test("tries a request without effect", async () => {
  const headers = { "Content-Type": "application/json", "Dry-Run": "true" };
  const tried = await api.createClient({ company_name: name }, { headers });
  assert.equal(tried.headers.get("dry-run"), "true");
});

test("lists with filters", async () => {
  const found = await api.listClients({ search: name, per_page: 5, created_from: "2020-01-01" });
  assert.ok(found.status === 200);
  assert.equal(found.data.meta.total, 1);
  const payments = await api.listAllPayments({ status: api.PaymentStatus.paid, client_id: found.data.data[0]!.id });
  assert.ok(payments.status === 200);
  assert.deepEqual(payments.data.data, []);
});

test("gets typed faults", async () => {
  const answer = await api.createClient({ company_name: name, email: "nobody" });
  assert.ok(answer.status === 422);
  const fault: api.FieldFault = answer.data.errors![0]!;
  assert.deepEqual([fault.pointer, fault.code], ["/email", api.FaultCode.bad_email]);
});

test("reads a PDF", async () => {
  const answer = await api.downloadPdf(tokenOf(invoice.pdf_url));
  assert.ok(answer.status === 200);
  const file: Blob = answer.data;
  assert.equal((await file.text()).slice(0, 5), "%PDF-");
});

test("reads an e-invoice", async () => {
  const answer = await api.getInvoiceUbl(invoice.id);
  assert.ok(answer.status === 200, JSON.stringify(answer.data));
  assert.match(answer.data, /^<\?xml/);
});

test("reads all clients as CSV", async () => {
  const answer = await api.exportClients({ search: name });
  assert.ok(answer.status === 200);
  const table: string = answer.data;
  assert.equal(table.trim().split("\n").length, 2);
});

test("uploads a form", async () => {
  const made = await api.uploadFile({ file: text("of a form") }, { name: "form.txt" });
  assert.ok(made.status === 201, JSON.stringify(made.data));
  assert.equal(made.data.data.meta.size, 9);
});

test("writes a flow as JSON and reads it as YAML", async () => {
  const steps = [{ id: "later", wait: { for: "1h" } }];
  const made = await api.createFlow({ name, trigger: { event: "invoice.paid" }, steps });
  assert.ok(made.status === 201, JSON.stringify(made.data));
  const read = await api.downloadFlowDefinition(made.data.data.id);
  assert.ok(read.status === 200);
  assert.ok((read.data as string).includes(name));
});

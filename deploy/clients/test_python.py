"""The client of openapi-python-client."""

import io
import os
import re
import uuid

import pytest
from client import AuthenticatedClient
from client.api.automation import create_flow, download_flow_definition
from client.api.clients import create_client, export_clients, list_clients
from client.api.document_pages import download_pdf
from client.api.files import upload_file
from client.api.invoices import create_invoice, get_invoice_ubl
from client.api.payments import list_all_payments
from client.models import (
    ClientInput,
    DocumentInput,
    DocumentRowInput,
    FaultCode,
    FileForm,
    GenerationMode,
    JsonObject,
    PaymentStatus,
    Problem,
    RelationType,
)
from client.types import File

NAME = f"python-{uuid.uuid4()}"
API = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"])


@pytest.fixture(scope="module")
def made():
    body = ClientInput(company_name=NAME, type_=RelationType.COMPANY)
    client = create_client.sync(client=API, body=body).data
    assert isinstance(client.id, uuid.UUID)
    assert client.type_ is RelationType.COMPANY
    rows = [DocumentRowInput(name="Bread", quantity=2, unit_price="1.50", vat_rate="9")]
    body = DocumentInput(client_id=client.id, title="Bread", generation_mode=GenerationMode.FINAL, rows=rows)
    return create_invoice.sync(client=API, body=body, idempotency_key=NAME).data


def test_it_creates_a_client_and_an_invoice(made):
    assert made.total_excl_vat == 3


def test_it_tries_a_request_without_effect():
    tried = create_client.sync_detailed(client=API, body=ClientInput(company_name=NAME), dry_run=True)
    assert tried.headers["dry-run"] == "true"


def test_it_lists_with_filters(made):
    found = list_clients.sync(client=API, search=NAME, per_page=5)
    assert found.meta.total == 1
    payments = list_all_payments.sync(client=API, status=PaymentStatus.PAID, client_id=str(found.data[0].id))
    assert payments.data == []


def test_it_gets_typed_faults():
    problem = create_client.sync(client=API, body=ClientInput(company_name=NAME, email="nobody"))
    assert isinstance(problem, Problem)
    assert [(fault.pointer, fault.code) for fault in problem.errors] == [("/email", FaultCode.BAD_EMAIL)]


def test_it_reads_a_pdf(made):
    token = re.search(r"/documents/([^/]+)/pdf$", made.pdf_url)[1]
    assert download_pdf.sync(token, client=API).payload.read(5) == b"%PDF-"


def test_it_reads_an_e_invoice(made):
    assert get_invoice_ubl.sync(made.id, client=API).startswith("<?xml")


def test_it_reads_all_clients_as_csv(made):
    assert len(export_clients.sync(client=API, search=NAME).strip().splitlines()) == 2


def test_it_uploads_a_form_and_bytes():
    form = FileForm(file=File(payload=io.BytesIO(b"of a form"), file_name="form.txt"))
    assert upload_file.sync(client=API, body=form, name="form.txt").data.meta.size == 9
    assert upload_file.sync(client=API, body=File(payload=io.BytesIO(b"bytes")), name="bytes.txt").data.meta.size == 5


def test_it_writes_a_flow_as_json_and_reads_it_as_yaml():
    steps = [{"id": "later", "wait": {"for": "1h"}}]
    flow = JsonObject.from_dict({"name": NAME, "trigger": {"event": "invoice.paid"}, "steps": steps})
    flow = create_flow.sync(client=API, body=flow).data
    assert NAME in download_flow_definition.sync(flow.id, client=API)

"""The first gRPC calls of an internal team, without generated code: the servers describe themselves by reflection. Trades
the credential for a token, lists clients, creates one, and repeats that without a second effect.

Environment: CREDENTIAL (from `gateway credential issue`), ACCOUNT (id or name; default demo), GATEWAY_GRPC and
RELATIONS_GRPC (host:port). Where the mesh uses TLS: TLS_CA, TLS_CERT and TLS_KEY, PEM files.
"""

import os
import pathlib
import sys
import uuid

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def wanted(variable, default=None):
    value = os.environ.get(variable, default)
    return value or sys.exit(f"{variable} must be set; the text at the top of {__file__} says to what")


def connect(address):
    if "TLS_CA" not in os.environ:
        return grpc.insecure_channel(address)
    read = lambda variable: pathlib.Path(os.environ[variable]).read_bytes() if variable in os.environ else None
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(read("TLS_CA"), read("TLS_KEY"), read("TLS_CERT")))


class Service:
    """A service as its server describes it; messages are dictionaries with the names of the proto files."""

    def __init__(self, address, name):
        self.name, self.channel = name, connect(address)
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))
        self.methods = pool.FindServiceByName(name).methods_by_name

    def call(self, method, message, **metadata):
        described = self.methods[method]
        call = self.channel.unary_unary(
            f"/{self.name}/{method}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(described.output_type).FromString,
        )
        request = json_format.ParseDict(message, message_factory.GetMessageClass(described.input_type)())
        entries = [(name.replace("_", "-"), value) for name, value in metadata.items()]
        answer = call(request, metadata=entries, timeout=10)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)


def main():
    tokens = Service(wanted("GATEWAY_GRPC"), "admin.accounts.v1.TokenService")
    credential = {"credential": wanted("CREDENTIAL"), "account": wanted("ACCOUNT", "demo")}
    # Lives for a minute: a program that runs longer asks for the next one in time.
    token = tokens.call("CreateToken", credential)["token"]

    clients = Service(wanted("RELATIONS_GRPC"), "admin.relations.v1.ClientService")
    page = clients.call("ListClients", {"per_page": 3}, x_context_token=token)
    # What is empty or zero is left out of a dictionary.
    print(f"{page['meta'].get('total', 0)} clients, among them:")
    for client in page.get("data", []):
        print(f"  {client['id']} {client.get('company_name', '')}")

    key, new = str(uuid.uuid4()), {"client": {"company_name": "First call in Python"}}
    create = lambda: clients.call("CreateClient", new, x_context_token=token, idempotency_key=key)["data"]["id"]
    print(f"created {create()}")
    print(f"the same key again: {create()}, nothing new")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")

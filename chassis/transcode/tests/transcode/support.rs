//! Descriptors for tests, and random messages of any type in them.

use std::fs;
use std::sync::OnceLock;

use chassis_transcode::contract::{self, Operation};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, Value,
};
use proto::api::Format;

pub(crate) fn compile(source: &str) -> DescriptorPool {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sample.proto"), source).unwrap();
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto");
    let mut compiler = protox::Compiler::new([folder.path(), own.as_ref()]).unwrap();
    compiler.include_imports(true).open_file("sample.proto").unwrap();
    DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).unwrap()
}

pub(crate) struct Contract {
    pub pool: DescriptorPool,
    pub operations: Vec<Operation>,
}

impl Contract {
    fn of(pool: DescriptorPool) -> Self {
        // An export has the request of its list, without the page.
        let operations = contract::operations(&pool).unwrap();
        let operations = operations.into_iter().filter(|operation| !operation.is_export()).collect();
        Self { pool, operations }
    }

    /// An operation by the last part of its name.
    pub(crate) fn operation(&self, name: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.name.ends_with(&format!(".{name}"))).unwrap()
    }

    pub(crate) fn method(&self, operation: &Operation) -> MethodDescriptor {
        let methods = self.pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        methods.into_iter().find(|method| method.full_name() == operation.name).unwrap()
    }
}

/// The test's own contract, with every kind of field.
pub(crate) fn sample() -> &'static Contract {
    static SAMPLE: OnceLock<Contract> = OnceLock::new();
    SAMPLE.get_or_init(|| Contract::of(compile(include_str!("sample.proto"))))
}

/// The product's contract.
pub(crate) fn product() -> &'static Contract {
    static PRODUCT: OnceLock<Contract> = OnceLock::new();
    PRODUCT.get_or_init(|| Contract::of(proto::policy::pool().clone()))
}

/// Both of them, operation by operation.
pub(crate) fn everything() -> Vec<(&'static Operation, MethodDescriptor)> {
    [sample(), product()]
        .into_iter()
        .flat_map(|contract| {
            contract.operations.iter().map(|operation| (operation, contract.method(operation)))
        })
        .collect()
}

/// For a property that is tried on every operation.
pub(crate) fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig::with_cases(96))
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Use {
    /// Only what JSON can say: an enum by its name, no empty decimal.
    Request,
    /// Whatever a service may put on the wire.
    Response,
}

pub(crate) fn message(descriptor: &MessageDescriptor, usage: Use) -> BoxedStrategy<DynamicMessage> {
    let descriptor = descriptor.clone();
    let fields: Vec<FieldDescriptor> = descriptor.fields().collect();
    let values: Vec<BoxedStrategy<Option<Value>>> =
        fields.iter().map(|field| presence(field, usage)).collect();
    values
        .prop_map(move |values| {
            let mut message = DynamicMessage::new(descriptor.clone());
            for (field, value) in fields.iter().zip(values) {
                if let Some(value) = value {
                    message.set_field(field, value);
                }
            }
            message
        })
        .boxed()
}

fn presence(field: &FieldDescriptor, usage: Use) -> BoxedStrategy<Option<Value>> {
    let single = value(field, usage);
    if field.is_list() {
        option::of(vec(single, 0..4).prop_map(Value::List)).boxed()
    } else {
        option::weighted(0.7, single).boxed()
    }
}

fn value(field: &FieldDescriptor, usage: Use) -> BoxedStrategy<Value> {
    match field.kind() {
        Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::Int32 => prop_oneof![Just(0), any::<i32>()].prop_map(Value::I32).boxed(),
        Kind::Int64 => prop_oneof![Just(0), any::<i64>()].prop_map(Value::I64).boxed(),
        Kind::Uint32 => any::<u32>().prop_map(Value::U32).boxed(),
        Kind::Uint64 if usage == Use::Request => (0..=i64::MAX as u64).prop_map(Value::U64).boxed(),
        Kind::Uint64 => any::<u64>().prop_map(Value::U64).boxed(),
        Kind::Bytes => vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Bytes(bytes.into())).boxed(),
        Kind::String => text(proto::policy::field(field).format(), usage).prop_map(Value::String).boxed(),
        Kind::Enum(kind) => {
            let known: Vec<i32> = kind.values().map(|v| v.number()).filter(|number| *number != 0).collect();
            let known = prop::sample::select(known).boxed();
            let number = match usage {
                Use::Request => known,
                Use::Response => prop_oneof![3 => known, 1 => Just(0), 1 => any::<i32>()].boxed(),
            };
            number.prop_map(Value::EnumNumber).boxed()
        }
        Kind::Message(inner) if inner.full_name() == "google.protobuf.Timestamp" => {
            (-62_135_596_800_i64..=253_402_300_799, 0..1_000_000_000_i32)
                .prop_map(move |(seconds, nanos)| {
                    let mut time = DynamicMessage::new(inner.clone());
                    time.set_field_by_name("seconds", Value::I64(seconds));
                    time.set_field_by_name("nanos", Value::I32(nanos));
                    Value::Message(time)
                })
                .boxed()
        }
        Kind::Message(inner) => message(&inner, usage).prop_map(Value::Message).boxed(),
        other => panic!("{other:?} is not part of the contract"),
    }
}

fn text(format: Format, usage: Use) -> BoxedStrategy<String> {
    match format {
        Format::Decimal => {
            let number = "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?".boxed();
            match usage {
                Use::Request => number,
                Use::Response => prop_oneof![3 => number, 1 => Just(String::new())].boxed(),
            }
        }
        Format::Json => prop::sample::select(vec![
            "{}",
            r#"{"a":[0.1,12345678901234567890.123,-0e+10]}"#,
            r#"{"é\n":{"c":null,"d":[true,false,{}]},"e":"\\\""}"#,
        ])
        .prop_map(str::to_owned)
        .boxed(),
        _ => prop_oneof![Just(String::new()), "[a-zé€😀 \"\\\\/\u{0}-\u{1f},&=%+]{0,8}", any::<String>()]
            .boxed(),
    }
}

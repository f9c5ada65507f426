//! Calls made from a contract's ABI and the fields of JSON objects.

use std::sync::Arc;

use alloy_dyn_abi::{DynSolType, DynSolValue, JsonAbiExt as _};
use alloy_json_abi::{Function, JsonAbi, Param};
use bytes::Bytes;
use proofmill_ethereum::revert::{ErrorAbi, explain};
use serde_json::Value;

use crate::contract::{Contract, Emission};

/// Makes the object whose fields are the arguments, from an emission. The error is a text for people.
pub type Arguments = Arc<dyn Fn(&Emission) -> Result<Value, String> + Send + Sync>;

/// A contract whose calls are made by its ABI.
///
/// The settling function has one parameter: a tuple, or an array of tuples if it takes several emissions at once. The asking
/// function has one or more parameters and returns one word. Each component of the tuple, and each parameter of the asking
/// function, is the field of its name of the emission's object.
pub struct AbiContract {
    settle: Function,
    is_settled: Function,
    errors: Vec<ErrorAbi>,
    batch_max: usize,
    arguments: Arguments,
}

/// An ABI by which no calls can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AbiContractError(String);

// === impl AbiContract ===

impl AbiContract {
    /// Calls of the functions `settle` and `is_settled` of a contract with this ABI, in the JSON that Solidity's compiler writes;
    /// an object with the field `abi`, as build tools write it, is taken too.
    ///
    /// # Errors
    /// [`AbiContractError`] if `abi` is not one, or one of the functions is missing or of another shape.
    pub fn new(
        abi: &str,
        settle: &str,
        is_settled: &str,
        batch_max: usize,
        arguments: Arguments,
    ) -> Result<Self, AbiContractError> {
        let failed = |why: String| AbiContractError(why);
        let value: Value = serde_json::from_str(abi).map_err(|error| failed(error.to_string()))?;
        let list = value.get("abi").unwrap_or(&value).to_string();
        let parsed: JsonAbi = serde_json::from_str(&list)
            .map_err(|error| failed(format!("not the ABI of a contract: {error}")))?;
        let errors = ErrorAbi::read(&list).map_err(|error| failed(error.to_string()))?;
        let settle = function(&parsed, settle)?;
        let is_settled = function(&parsed, is_settled)?;
        let batch_max = match &settle.inputs[..] {
            [only] if only.ty == "tuple" => 1,
            [only] if only.ty == "tuple[]" => batch_max.max(1),
            _ => {
                let why = "its one parameter must be a struct, or an array of structs";
                return Err(failed(format!("{}: {why}", settle.signature())));
            }
        };
        let outputs: Vec<&str> = is_settled
            .outputs
            .iter()
            .map(|output| output.ty.as_str())
            .collect();
        let is_word = |ty: &str| ty == "bool" || ty == "bytes32" || ty.starts_with("uint");
        if outputs.len() != 1 || !is_word(outputs[0]) || outputs[0].ends_with(']') {
            let why = "it must return one bool, uint or bytes32, which is zero if the payload was not settled";
            return Err(failed(format!("{}: {why}", is_settled.signature())));
        }
        check_names(&settle, &settle.inputs[0].components)?;
        check_names(&is_settled, &is_settled.inputs)?;
        Ok(Self {
            settle,
            is_settled,
            errors,
            batch_max,
            arguments,
        })
    }
}

/// The only function of this name.
fn function(abi: &JsonAbi, name: &str) -> Result<Function, AbiContractError> {
    match abi.functions.get(name).map(|found| &found[..]) {
        Some([only]) => Ok(only.clone()),
        Some(_) => Err(AbiContractError(format!(
            "the contract has several functions `{name}`"
        ))),
        None => {
            let names: Vec<&str> = abi.functions.keys().map(String::as_str).collect();
            let all = names.join(", ");
            let why = format!("the contract has no function `{name}`; it has {all}");
            Err(AbiContractError(why))
        }
    }
}

/// Fails unless each argument of `function` has a name.
fn check_names(function: &Function, params: &[Param]) -> Result<(), AbiContractError> {
    let signature = function.signature();
    if params.is_empty() {
        return Err(AbiContractError(format!(
            "{signature}: it has no arguments"
        )));
    }
    if params.iter().any(|param| param.name.is_empty()) {
        let why = "each argument needs a name: that of a field of the payload";
        return Err(AbiContractError(format!("{signature}: {why}")));
    }
    Ok(())
}

impl Contract for AbiContract {
    fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn settle(&self, emissions: &[Emission]) -> Result<Bytes, String> {
        let parameter = &self.settle.inputs[0];
        let tuples = emissions.iter().map(|emission| {
            let object = (self.arguments)(emission)?;
            tuple(&parameter.components, &object)
        });
        let tuples = tuples.collect::<Result<Vec<_>, String>>()?;
        let argument = match (parameter.ty.as_str(), &tuples[..]) {
            ("tuple[]", _) => DynSolValue::Array(tuples),
            (_, [only]) => only.clone(),
            _ => return Err("the contract takes one emission at a time".to_owned()),
        };
        let data = self.settle.abi_encode_input(&[argument]);
        data.map(Into::into).map_err(|error| error.to_string())
    }

    fn is_settled(&self, emission: &Emission) -> Result<Bytes, String> {
        let object = (self.arguments)(emission)?;
        let params = self.is_settled.inputs.iter();
        let values = params.map(|param| field(param, &object));
        let values = values.collect::<Result<Vec<_>, String>>()?;
        let data = self.is_settled.abi_encode_input(&values);
        data.map(Into::into).map_err(|error| error.to_string())
    }

    fn explain(&self, revert: &[u8]) -> String {
        explain(revert, &self.errors)
    }
}

/// The values of a tuple's components: the fields of their names.
fn tuple(components: &[Param], object: &Value) -> Result<DynSolValue, String> {
    let values = components.iter().map(|component| field(component, object));
    Ok(DynSolValue::Tuple(values.collect::<Result<_, String>>()?))
}

/// The field of `object` that has the parameter's name, as the parameter's type.
fn field(param: &Param, object: &Value) -> Result<DynSolValue, String> {
    let name = &param.name;
    let value = object.get(name);
    let value = value.ok_or_else(|| format!("the payload has no field `{name}`"))?;
    convert(param, &param.ty, value).map_err(|why| format!("field `{name}`: {why}"))
}

/// `value` as the type `ty`, whose tuples have the components of `param`.
fn convert(param: &Param, ty: &str, value: &Value) -> Result<DynSolValue, String> {
    if let Some((inner, length)) = array(ty) {
        let values = value.as_array().ok_or("not an array")?;
        let items = values.iter().map(|value| convert(param, inner, value));
        let items = items.collect::<Result<Vec<_>, String>>()?;
        return match length {
            "" => Ok(DynSolValue::Array(items)),
            length if length.parse() == Ok(items.len()) => Ok(DynSolValue::FixedArray(items)),
            length => Err(format!("{} items, and the type has {length}", items.len())),
        };
    }
    if ty == "tuple" {
        return tuple(&param.components, value);
    }
    let text = match value {
        Value::String(text) if ty == "string" => return Ok(DynSolValue::String(text.clone())),
        Value::String(text) => text.clone(),
        // Larger numbers have lost digits when they were read.
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        Value::Number(_) => {
            return Err("a number that is not exact: write it as a string".to_owned());
        }
        Value::Bool(is) => is.to_string(),
        _ => return Err(format!("not a {ty}")),
    };
    let parsed = DynSolType::parse(ty).map_err(|error| error.to_string())?;
    let value = parsed.coerce_str(&text);
    value.map_err(|error| format!("not a {ty}: {error}"))
}

/// The type of the items and the length (empty if it may be any) of an array type.
fn array(ty: &str) -> Option<(&str, &str)> {
    ty.strip_suffix(']')?.rsplit_once('[')
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;
    use serde_json::json;

    use super::*;

    const SETTLE: &str = "(uint64 batch, bytes32 root, uint32[] bits, bytes proof)[]";

    /// Parameters written as `TYPE NAME, TYPE NAME`.
    fn params(text: &str) -> Value {
        let params = text.split(", ").filter(|param| !param.is_empty());
        let param = |param: &str| {
            let (ty, name) = param.split_once(' ').unwrap_or((param, ""));
            json!({"type": ty, "name": name})
        };
        params.map(param).collect()
    }

    /// An ABI with functions `submit` and `settled` of these parameters: a tuple or an array of tuples, and a list.
    fn abi(settle: &str, question: &str) -> String {
        let inner = settle.strip_prefix('(');
        let inputs = match inner.and_then(|text| text.split_once(')')) {
            Some((components, suffix)) => {
                let (ty, components) = (format!("tuple{suffix}"), params(components));
                json!([{"type": ty, "name": "", "components": components}])
            }
            None => params(settle),
        };
        let output = json!([{"type": "bool", "name": ""}]);
        let function = |name: &str, inputs: Value| {
            json!({"type": "function", "name": name, "inputs": inputs, "outputs": output,
                   "stateMutability": "view"})
        };
        let inner = json!([{"type": "uint64", "name": "expected"}]);
        let error = json!({"type": "error", "name": "NotNext", "inputs": inner});
        let functions = [
            function("submit", inputs),
            function("settled", params(question)),
        ];
        json!([functions[0], functions[1], error]).to_string()
    }

    fn contract(
        settle: &str,
        question: &str,
        object: Value,
    ) -> Result<AbiContract, AbiContractError> {
        let arguments: Arguments = Arc::new(move |_| Ok(object.clone()));
        AbiContract::new(&abi(settle, question), "submit", "settled", 8, arguments)
    }

    fn emission() -> Emission {
        Emission {
            first: 4,
            last: 5,
            bytes: Bytes::new(),
        }
    }

    fn object() -> Value {
        let root = format!("0x{}", "ab".repeat(32));
        json!({"batch": 7, "root": root, "bits": [1, "2"], "proof": "0x0102", "more": null})
    }

    #[test]
    fn calls_are_encoded_as_solidity_does() {
        let contract = contract(SETTLE, "uint64 batch", object()).expect("fine");
        let question = contract.is_settled(&emission()).expect("a call");
        let mut expected = keccak256("settled(uint64)")[..4].to_vec();
        expected.extend([0; 31]);
        expected.push(7);
        assert_eq!(question, expected);
        let one = contract.settle(&[emission()]).expect("a call");
        let selector = &keccak256("submit((uint64,bytes32,uint32[],bytes)[])")[..4];
        assert_eq!(&one[..4], selector);
        // Offset of the array, its length, offset of the tuple, and the tuple: four heads, three words of bits, two of the proof.
        assert_eq!(one.len(), 4 + 32 * (3 + 4 + 3 + 2));
        let two = contract.settle(&[emission(), emission()]).expect("a call");
        assert_eq!(two.len(), one.len() + 32 * (1 + 4 + 3 + 2));
        let mut revert = keccak256("NotNext(uint64)")[..4].to_vec();
        revert.extend([0; 31]);
        revert.push(9);
        let explained = contract.explain(&revert);
        assert!(
            explained.contains("NotNext") && explained.contains('9'),
            "{explained}"
        );
    }

    #[test]
    fn fields_that_are_missing_or_of_another_type_are_named() {
        for (name, value, why) in [
            ("batch", json!(-1), "field `batch`: not a uint64"),
            (
                "batch",
                json!("18446744073709551616"),
                "field `batch`: not a uint64",
            ),
            (
                "batch",
                json!(1e20),
                "field `batch`: a number that is not exact",
            ),
            ("root", json!("0x00"), "field `root`: not a bytes32"),
            ("bits", json!(5), "field `bits`: not an array"),
            ("bits", json!([1, [2]]), "field `bits`: not a uint32"),
            ("proof", json!("zz"), "field `proof`: not a bytes"),
            ("proof", Value::Null, "field `proof`: not a bytes"),
        ] {
            let mut object = object();
            object[name] = value;
            let contract = contract(SETTLE, "uint64 batch", object).expect("fine");
            let error = contract.settle(&[emission()]).expect_err(why);
            assert!(error.starts_with(why), "{error}");
        }
        let contract = contract(SETTLE, "bytes32 last", object()).expect("fine");
        let error = contract.is_settled(&emission()).expect_err("no such field");
        assert_eq!(error, "the payload has no field `last`");
    }

    #[test]
    fn functions_of_another_shape_are_refused() {
        for (settle, question, why) in [
            ("uint64 batch", "uint64 batch", "must be a struct"),
            ("(uint64 batch)[2]", "uint64 batch", "must be a struct"),
            ("(uint64)[]", "uint64 batch", "needs a name"),
            (SETTLE, "uint64", "needs a name"),
            (SETTLE, "", "no arguments"),
        ] {
            let error = contract(settle, question, json!({}));
            let error = error.err().expect(why).to_string();
            assert!(error.contains(why), "{error}");
        }
        let abi = abi(SETTLE, "uint64 batch");
        let text = abi.replace("\"bool\"", "\"string\"");
        for (abi, name, why) in [
            (text.as_str(), "submit", "must return one bool"),
            (abi.as_str(), "settle", "it has settled, submit"),
            ("{\"abi\": 5}", "submit", "not the ABI"),
            ("nothing", "submit", "expected"),
        ] {
            let arguments: Arguments = Arc::new(|_| Ok(Value::Null));
            let error = AbiContract::new(abi, name, "settled", 8, arguments);
            let error = error.err().expect(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}

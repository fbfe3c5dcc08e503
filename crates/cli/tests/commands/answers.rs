//! JSON output is what the JSON Schemas of the commands say, and so are its types in Python.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::cli::folder;
use crate::python::is_written;
use crate::support::run::{oneport, text as text_of};

/// By class of Python: the command, how many of its forms the class may have, and fields that the
/// class has in another form.
const ANSWERS: [(&str, &str, usize, &[&str]); 8] = [
    ("Report", "check", 1, &[]),
    ("Simulation", "simulate", 1, &["time"]),
    ("Comparison", "compare", 2, &[]),
    ("Tuning", "tune", 1, &[]),
    ("Guidelines", "guidelines", 1, &[]),
    ("Profile", "calibrate", 1, &[]),
    ("Synthesis", "synthesize", 1, &["schedule"]),
    ("Steady", "steady", 1, &["schedule"]),
];

/// A schema in place of a reference to it.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        None => schema,
        Some(name) => resolved(root, &root["$defs"][name.strip_prefix("#/$defs/").unwrap()]),
    }
}

/// The alternatives of a schema, `null` apart.
fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let schema = resolved(root, schema);
    let several = ["anyOf", "oneOf"]
        .iter()
        .find_map(|&key| schema[key].as_array());
    let is_object = schema.get("properties").is_some();
    match several.filter(|_| !is_object) {
        None => vec![schema],
        Some(several) => {
            let several = several.iter().filter(|one| one["type"] != "null");
            several.flat_map(|one| alternatives(root, one)).collect()
        }
    }
}

/// The items of a list of any length, or of one of so many items.
fn items(schema: &Value) -> Vec<&Value> {
    match schema["prefixItems"].as_array() {
        Some(several) => several.iter().collect(),
        None => schema.get("items").into_iter().collect(),
    }
}

/// Whether `null` is among what a schema describes.
fn may_be_null(root: &Value, schema: &Value) -> bool {
    let schema = resolved(root, schema);
    let of_several = |key: &str| {
        let several = schema[key].as_array();
        several.is_some_and(|several| several.iter().any(|one| one["type"] == "null"))
    };
    let names = schema["type"].as_array();
    names.is_some_and(|names| names.contains(&"null".into())) || of_several("anyOf")
}

/// The classes of dicts with known fields, in the making.
struct Dicts<'a> {
    root: &'a Value,
    text: String,
    /// By its fields: the name of a class.
    known: BTreeMap<String, String>,
}

impl Dicts<'_> {
    /// The type of what any of these schemas describes; dicts have this name.
    fn annotation(&mut self, name: &str, schemas: &[&Value]) -> String {
        let root = self.root;
        let all: Vec<&Value> = schemas
            .iter()
            .flat_map(|one| alternatives(root, one))
            .collect();
        let (dicts, others): (Vec<&Value>, Vec<&Value>) = all
            .into_iter()
            .partition(|one| one.get("properties").is_some());
        let (lists, others): (Vec<&Value>, Vec<&Value>) =
            others.into_iter().partition(|one| !items(one).is_empty());
        let mut types = Vec::new();
        if !dicts.is_empty() {
            types.push(self.dict(name, &dicts));
        }
        if !lists.is_empty() {
            let items = lists.iter().flat_map(|one| items(one));
            let items: Vec<&Value> = items.collect();
            types.push(format!("list[{}]", self.nullable(name, &items)));
        }
        let mut constants = Vec::new();
        for one in others {
            if let Some(constant) = one.get("const") {
                constants.push(constant.to_string());
            } else if let Some(names) = one["enum"].as_array() {
                constants.extend(names.iter().map(Value::to_string));
            } else if let Some(values) = one.get("additionalProperties").filter(|v| v.is_object()) {
                types.push(format!("dict[str, {}]", self.nullable(name, &[values])));
            } else {
                let names = match &one["type"] {
                    Value::Array(names) => names.clone(),
                    name => vec![name.clone()],
                };
                types.extend(names.iter().filter(|name| **name != "null").map(|name| {
                    match name.as_str() {
                        Some("boolean") => "bool",
                        Some("integer") => "int",
                        Some("number") => "float",
                        Some("string") => "str",
                        Some("object") => "dict[str, Any]",
                        _ => "Any",
                    }
                    .to_string()
                }));
            }
        }
        if !constants.is_empty() {
            types.push(format!("Literal[{}]", constants.join(", ")));
        }
        let mut seen = BTreeSet::new();
        types.retain(|one| seen.insert(one.clone()));
        types.join(" | ")
    }

    /// The same, with None where a schema allows it.
    fn nullable(&mut self, name: &str, schemas: &[&Value]) -> String {
        let null = schemas.iter().any(|one| may_be_null(self.root, one));
        let types = self.annotation(name, schemas);
        types + if null { " | None" } else { "" }
    }

    /// The fields of all these schemas: name, type, whether all have it, and what it means.
    fn fields(&mut self, name: &str, schemas: &[&Value]) -> Vec<(String, String, bool, String)> {
        let mut names: Vec<&String> = Vec::new();
        for schema in schemas {
            let properties = schema["properties"].as_object().unwrap();
            names.extend(
                properties
                    .keys()
                    .filter(|name| !names.contains(name))
                    .collect::<Vec<_>>(),
            );
        }
        let field = |field: &String| {
            let with: Vec<&Value> = schemas
                .iter()
                .filter_map(|schema| schema["properties"].get(field))
                .collect();
            let is_in = |schema: &&&Value| {
                let required = schema["required"].as_array();
                required.is_some_and(|names| names.contains(&field.as_str().into()))
            };
            let in_all = schemas.iter().filter(is_in).count() == schemas.len();
            let mut words = field.split('_').map(|word| {
                let (first, rest) = word.split_at(1);
                first.to_uppercase() + rest
            });
            let inner = format!("{name}{}", words.by_ref().collect::<String>());
            let types = if in_all {
                self.nullable(&inner, &with)
            } else {
                self.annotation(&inner, &with)
            };
            let doc = with.iter().find_map(|one| one["description"].as_str());
            (
                field.clone(),
                types,
                in_all,
                doc.unwrap_or_default().to_string(),
            )
        };
        names.into_iter().map(field).collect()
    }

    /// Adds a class, unless there is one with the same fields; its name.
    fn dict(&mut self, name: &str, schemas: &[&Value]) -> String {
        let mut body = String::new();
        let fields = self.fields(name, schemas);
        // A class has no attribute of the name of a keyword.
        let by_call = fields
            .iter()
            .any(|(field, ..)| KEYWORDS.contains(&&**field));
        for (field, types, in_all, doc) in fields {
            let types = if in_all {
                types
            } else {
                format!("NotRequired[{types}]")
            };
            if by_call {
                writeln!(body, "    \"{field}\": {types},").unwrap();
            } else {
                add(&mut body, &field, &types, &doc);
            }
        }
        if let Some(known) = self.known.get(&body) {
            return known.clone();
        }
        let class = if by_call {
            format!("\n{name} = TypedDict(\"{name}\", {{\n{body}}})\n")
        } else {
            format!("\nclass {name}(TypedDict):\n{body}")
        };
        self.text += &class;
        self.known.insert(body, name.to_string());
        name.to_string()
    }
}

/// Adds a field with what it means.
fn add(body: &mut String, field: &str, types: &str, doc: &str) {
    writeln!(body, "    {field}: {types}").unwrap();
    if !doc.is_empty() {
        writeln!(body, "    \"\"\"{doc}\"\"\"").unwrap();
    }
}

/// Keywords of Python that are names of fields.
const KEYWORDS: [&str; 1] = ["from"];

/// Attributes that every dict has.
const METHODS: [&str; 8] = [
    "clear", "copy", "get", "items", "keys", "pop", "update", "values",
];

fn answers() -> String {
    let mut text = "\
\"\"\"The fields of answers, for type checkers and editors.

Made of the JSON Schemas of the commands: UPDATE_PYTHON=1 cargo test -p oneport-cli --test commands
python writes this file. A field that not every answer has is absent where nothing is to be said.\"\"\"

from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired
"
    .to_string();
    let mut known = BTreeMap::new();
    for (class, command, forms, own) in ANSWERS {
        let schema = oneport_app::answer_schema(command).unwrap();
        let root: Value = serde_json::from_str(&schema).unwrap();
        let several = root["anyOf"].as_array();
        let all = several.map_or_else(|| vec![&root], |several| several.iter().collect());
        let all = all.into_iter().take(forms);
        let all: Vec<&Value> = all.flat_map(|form| alternatives(&root, form)).collect();
        let mut dicts = Dicts {
            root: &root,
            text: String::new(),
            known,
        };
        let mut body = String::new();
        for (field, types, _, doc) in dicts.fields(class, &all) {
            if !own.contains(&&*field) && !METHODS.contains(&&*field) {
                add(&mut body, &field, &types, &doc);
            }
        }
        text += &dicts.text;
        write!(
            text,
            "\nclass {class}Fields:\n    \"\"\"Fields of ``oneport {command} --json``.\"\"\"\n\n{body}"
        )
        .unwrap();
        known = dicts.known;
    }
    text
}

#[test]
fn the_types_of_answers_are_those_of_the_commands() {
    is_written("python/oneport/_answers.pyi", &answers());
}

/// Where a value is not as a schema says: fields that the schema does not know count, too.
fn unlike(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    if value.is_null() {
        return (!may_be_null(root, schema)).then(|| format!("{path} is null"));
    }
    let all = alternatives(root, schema);
    let each = all
        .into_iter()
        .map(|one| unlike_one(root, one, value, path));
    let wrong: Vec<Option<String>> = each.collect();
    let is_like = wrong.iter().any(Option::is_none);
    if is_like {
        None
    } else {
        wrong.into_iter().flatten().max_by_key(String::len)
    }
}

fn unlike_one(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    if let Some(object) = value.as_object() {
        if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
            let mut fields = object.iter();
            return fields.find_map(|(name, v)| unlike(root, values, v, &format!("{path}.{name}")));
        }
        // What is not described, such as a whole schedule.
        let Some(properties) = schema["properties"].as_object() else {
            return (schema != &Value::Bool(true)
                && schema.as_object().is_none_or(|s| !s.is_empty()))
            .then(|| format!("{path} is an object"));
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let mut required = required.map(|name| name.as_str().unwrap());
        if let Some(missing) = required.find(|name| !object.contains_key(*name)) {
            return Some(format!("{path} has no {missing}"));
        }
        return object.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match properties.get(name) {
                None => Some(format!("{path} is unknown")),
                Some(schema) => unlike(root, schema, value, &path),
            }
        });
    }
    if let Some(list) = value.as_array() {
        let (items, any_length) = (items(schema), schema.get("items").is_some());
        if items.is_empty() || !any_length && items.len() != list.len() {
            return Some(format!("{path} is a list"));
        }
        let mut each = list.iter().enumerate();
        return each.find_map(|(i, value)| {
            let schema = items[if any_length { 0 } else { i }];
            unlike(root, schema, value, &format!("{path}[{i}]"))
        });
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.clone(),
        Value::Null => Vec::new(),
        name => vec![name.clone()],
    };
    let is = |name: &Value| match name.as_str().unwrap() {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        _ => false,
    };
    let constants = schema["enum"].as_array();
    let is_one = constants.map(|all| all.contains(value));
    let is_const = schema.get("const").map(|constant| constant == value);
    let fits = is_one.or(is_const).unwrap_or_else(|| names.iter().any(is));
    (!fits).then(|| format!("{path} is {value}"))
}

#[test]
fn answers_are_as_their_schemas_say() {
    let folder = folder("answers");
    let path = |name: &str| folder.join(name).display().to_string();
    let (right, wrong, proof) = (path("right.json"), path("wrong.json"), path("proof.json"));
    oneport(&format!(
        "plan broadcast -p 4 -a chain --bytes 64 -o {right}"
    ))
    .output()
    .unwrap();
    let text = fs::read_to_string(&right).unwrap();
    fs::write(&wrong, text.replacen("\"root\": 0", "\"root\": 1", 1)).unwrap();
    oneport(&format!("steady --generate fig3 --certificate {proof}"))
        .output()
        .unwrap();
    for line in [
        "list".to_string(),
        "list bine".into(),
        "plan scan -p 5".into(),
        "check reduce -p 9".into(),
        "check allreduce -p 6 -a one-shot --bytes 24 --dtype f32".into(),
        "check allreduce -p 5 -a all --dtype f64".into(),
        format!("check --schedule {right} --bytes 64"),
        format!("check --schedule {wrong}"),
        format!("check --schedule {right} {wrong} {proof}"),
        format!("check --certificate {proof}"),
        "simulate reduce -p 6 --bytes 1KiB -a binomial --explain --critical-path --ranks-table"
            .into(),
        "simulate gather -p 12 -a optimal --sizes 1,2,3,4,5,6,7,8,9,10,11,12 --ports uni".into(),
        "simulate reduce -p 15 --alpha 1 --beta 1 --gamma 1 -a uni-greedy --bytes 5 --ports uni"
            .into(),
        "simulate broadcast -p 2..5 --bytes 8..64*8".into(),
        "compare allreduce -p 6 --bytes 1KiB --dtype f32 --arrivals 5:20us".into(),
        "compare reduce -p 3..5 --late 10us".into(),
        "compare allreduce -p 2 --engine threads --repetitions 3 --bytes 8".into(),
        "run allreduce -p 2 --bytes 64 --repetitions 5".into(),
        "run broadcast -p 2 --bytes 8..64*8 --repetitions 5".into(),
        format!("run --schedule {wrong}"),
        "guidelines reduce broadcast -p 4 --bytes 8,64KiB".into(),
        "bits allreduce -p 4 -a ring --bytes 16,32".into(),
        "tune allreduce -p 2 --bytes 8 --budget 200ms -a ring,recursive-doubling".into(),
        "synthesize allreduce -p 3".into(),
        "steady --generate fig3".into(),
        "steady --generate ring:4 --collective reduce --size 4 --robust --drift 0.1".into(),
    ] {
        let command = line.split(' ').next().unwrap();
        let done = oneport(&format!("{line} --json")).output().unwrap();
        let (text, said) = (&done.stdout, String::from_utf8_lossy(&done.stderr));
        let value: Value =
            serde_json::from_slice(text).unwrap_or_else(|error| panic!("{line}: {error}; {said}"));
        let schema = serde_json::from_str(&text_of(&format!("schema {command}"))).unwrap();
        let wrong = unlike(&schema, &schema, &value, "");
        assert_eq!(wrong, None, "{line}");
    }
}

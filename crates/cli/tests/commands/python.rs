//! The types of the options of the Python package are those of the commands.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// By class: the command, and what the function has as parameters of its own.
const CLASSES: [(&str, &str, &[&str]); 12] = [
    (
        "PlanMore",
        "plan",
        &[
            "schedule",
            "bytes",
            "algorithm",
            "ports",
            "root",
            "segments",
            "costs",
        ],
    ),
    ("LoadOptions", "plan", &["schedule"]),
    ("CheckOptions", "check", &["schedule"]),
    (
        "SimulateMore",
        "simulate",
        &["schedule", "costs", "arrivals"],
    ),
    ("CompareOfSchedule", "compare", &["schedule", "costs"]),
    (
        "CompareMore",
        "compare",
        &["bytes", "algorithm", "ports", "root", "segments", "costs"],
    ),
    ("DrawOptions", "draw", &["schedule"]),
    (
        "TuneMore",
        "tune",
        &["bytes", "algorithms", "budget", "costs"],
    ),
    (
        "GuidelinesMore",
        "guidelines",
        &["kinds", "bytes", "native", "costs"],
    ),
    ("CalibrateMore", "calibrate", &["quick"]),
    ("SynthesizeOptions", "synthesize", &[]),
    ("SteadyOptions", "steady", &["platform", "output"]),
];

/// What Python has another form for.
fn special(name: &str) -> Option<&'static str> {
    Some(match name {
        "costs" => "Costs",
        "dtype" | "arrivals" => "Any",
        _ => return None,
    })
}

/// The type of what a schema describes.
fn annotation(schema: &Value) -> String {
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().map(Value::to_string).collect();
        return format!("Literal[{}]", names.join(", "));
    }
    if let Some(several) = schema["anyOf"].as_array() {
        let one = annotation(&several[0]);
        return format!("{one} | Sequence[{one}]");
    }
    let is_path = schema["format"] == "path";
    let one = |name: &Value| match name.as_str() {
        Some("boolean") => "bool",
        Some("integer") => "int",
        Some("number") => "float",
        Some("object") => "Mapping[str, Any]",
        Some("string") if is_path => "Path",
        _ => "str",
    };
    match schema["type"].as_array() {
        Some(names) => names.iter().map(one).collect::<Vec<_>>().join(" | "),
        None => one(&schema["type"]).to_string(),
    }
}

fn stubs() -> String {
    let schemas = oneport_app::schemas();
    let mut text = "\
\"\"\"The options of functions, for type checkers and editors.

Made of the options of the commands: UPDATE_PYTHON=1 cargo test -p oneport-cli --test commands python
writes this file.\"\"\"

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._command import Costs, Path, Progress
"
    .to_string();
    for (class, command, own) in CLASSES {
        write!(text, "\nclass {class}(TypedDict, total=False):\n").unwrap();
        writeln!(text, "    \"\"\"Options of ``{command}``.\"\"\"\n").unwrap();
        let schema = &schemas[command];
        // The collective and the number of ranks are parameters of all functions; Python has no
        // attribute of the name `as`.
        let left_out = ["collective", "ranks", "json", "as"];
        let is_left_out = |name: &str| left_out.contains(&name) || own.contains(&name);
        let properties = schema["properties"].as_object().unwrap();
        for (name, property) in properties.iter().filter(|(name, _)| !is_left_out(name)) {
            let types = special(name).map_or_else(|| annotation(property), str::to_string);
            let doc = property["description"].as_str().unwrap();
            writeln!(text, "    {name}: {types} | None").unwrap();
            writeln!(text, "    \"\"\"{}\"\"\"", doc.replace('\\', "\\\\")).unwrap();
        }
        let mut add = |field: &str, doc: &str| {
            writeln!(text, "    {field}\n    \"\"\"{doc}\"\"\"").unwrap();
        };
        if properties.contains_key("dtype") && (command == "tune" || !own.contains(&"bytes")) {
            add(
                "elements: int | None",
                "Number of elements, in place of bytes",
            );
        }
        if class == "LoadOptions" || own.contains(&"schedule") && class != "PlanMore" {
            add("p: int | None", "Number of ranks");
        }
        if [
            "CheckOptions",
            "SimulateMore",
            "CompareOfSchedule",
            "DrawOptions",
        ]
        .contains(&class)
            || command == "synthesize"
        {
            add(
                "progress: Progress",
                "Whether to say how far it is, or who is told",
            );
        }
    }
    text
}

#[test]
fn the_types_of_options_are_those_of_the_commands() {
    is_written("python/oneport/_options.pyi", &stubs());
}

/// Compares with a file, or writes it.
pub(crate) fn is_written(path: &str, stubs: &str) {
    let path = Path::new(ROOT).join(path);
    if std::env::var_os("UPDATE_PYTHON").is_some() {
        std::fs::write(&path, stubs).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == stubs,
        "the options or answers of commands have changed: UPDATE_PYTHON=1 cargo test -p oneport-cli \
         --test commands python writes {}",
        path.display()
    );
}

//! Mutates valid texts into texts that are almost valid.

use serde_json::Value;

use crate::support::random::Random;

/// Numbers that readers are likely to mishandle, some of which are not valid JSON.
pub(super) const NUMBERS: [&str; 33] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-0",
    "0.5",
    "1.5",
    "1e3",
    "1e-3",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "1152921504606846976",
    "1152921504606846977",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "1e308",
    "-1e308",
    "1e-320",
    "1e999",
    "1e64",
    "1.25e-64",
    "1e-2147483648",
    "NaN",
    "inf",
];

/// Tokens of all text formats.
const TOKENS: [&str; 36] = [
    "[", "]", "{", "}", ",", ":", "\"", "-", ".", "/", "\\", " ", "\n", "#", "e", "+", "null",
    "true", "false", "\"\"", "[]", "{}", "[[]]", "\u{0}", "µs", "é", "\u{feff}", "KiB", "ns",
    "\"1/2\"", "\"1/0\"", "0x10", "\"free\"", "\"uni\"", "..", "\r\n",
];

/// Returns a text that is made of one or two of the examples, with a few mutations.
pub(super) fn mutate(random: &mut Random, examples: &[String]) -> String {
    if random.one_in(40) {
        return garbage(random);
    }
    let mut text = random.pick(examples).clone();
    if random.one_in(3) {
        // If only small numbers change, most results are still valid.
        let mut bytes = text.into_bytes();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() + 1);
            let number = random.below(10).to_string();
            replace_number(&mut bytes, at, &number);
        }
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    for _ in 0..1 + random.below(3) {
        if random.one_in(2)
            && let Ok(value) = serde_json::from_str(&text)
        {
            text = change_value(random, value, examples);
        } else {
            text = change_text(random, text, examples);
        }
        if text.len() > 1 << 16 {
            text = cut(text, 1 << 12);
        }
    }
    text
}

/// Returns tokens, numbers and bytes in random order.
fn garbage(random: &mut Random) -> String {
    let mut bytes = Vec::new();
    for _ in 0..random.below(60) {
        match random.below(3) {
            0 => bytes.extend(random.pick(&TOKENS).as_bytes()),
            1 => bytes.extend(random.pick(&NUMBERS).as_bytes()),
            _ => bytes.push(random.below(256) as u8),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn cut(mut text: String, len: usize) -> String {
    while !text.is_char_boundary(len.min(text.len())) {
        text.pop();
    }
    text.truncate(len);
    text
}

/// Applies one mutation to the bytes, whether they are JSON or not.
fn change_text(random: &mut Random, text: String, examples: &[String]) -> String {
    let mut bytes = text.into_bytes();
    let at = random.below(bytes.len() + 1);
    let end = at + random.below((bytes.len() - at).min(40) + 1);
    match random.below(10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let part = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        4 => drop(bytes.splice(at..end, random.pick(&TOKENS).bytes())),
        5 => {
            // The start of this text and the end of an example.
            let other = random.pick(examples).as_bytes();
            bytes.truncate(at);
            bytes.extend(&other[random.below(other.len() + 1)..]);
        }
        6 if random.one_in(4) => {
            let depth = *random.pick(&[10, 127, 128, 10_000]);
            let (open, close) = *random.pick(&[("[", "]"), ("{\"a\":", "}")]);
            let nested = open.repeat(depth) + "1" + &close.repeat(depth);
            bytes.splice(at..end, nested.into_bytes());
        }
        _ => replace_number(&mut bytes, at, random.pick::<&str>(&NUMBERS)),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces the first number at or after `at`, if there is one.
fn replace_number(bytes: &mut Vec<u8>, at: usize, number: &str) {
    let is_part = |b: &u8| b.is_ascii_digit() || b".-+".contains(b);
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let len = bytes[start..].iter().take_while(|b| is_part(b)).count();
    bytes.splice(start..start + len, number.bytes());
}

/// Changes one value of a JSON text, or drops, repeats, moves or renames one of its items.
fn change_value(random: &mut Random, mut value: Value, examples: &[String]) -> String {
    let count = count(&value);
    let other = serde_json::from_str(random.pick::<String>(examples)).unwrap_or(Value::Null);
    // A random part of this text or of an example.
    let source = if random.one_in(2) { &other } else { &value };
    let at = random.below(self::count(source));
    let part = find(source, &mut at.clone()).cloned().unwrap_or_default();
    // `Value` cannot hold every number, so the final text replaces a placeholder by the number.
    let mut raw = None;
    let replaced = find_mut(&mut value, &mut random.below(count));
    if let Some(place) = replaced {
        match random.below(6) {
            0 | 1 => {
                raw = Some(*random.pick(&NUMBERS));
                *place = Value::from(PLACEHOLDER);
            }
            2 | 3 => *place = part,
            4 => *place = Value::from(*random.pick(&TOKENS)),
            _ => match place {
                Value::Array(items) if !items.is_empty() => {
                    let (i, j) = (random.below(items.len()), random.below(items.len()));
                    match random.below(3) {
                        0 => drop(items.remove(i)),
                        1 => items.insert(j, items[i].clone()),
                        _ => items.swap(i, j),
                    }
                }
                Value::Object(fields) if !fields.is_empty() => {
                    let i = random.below(fields.len());
                    let name = fields.keys().nth(i).cloned().unwrap_or_default();
                    let field = fields.remove(&name).unwrap_or_default();
                    if random.one_in(2) {
                        fields.insert(name + "x", field);
                    }
                }
                _ => *place = Value::Null,
            },
        }
    }
    let text = value.to_string();
    match raw {
        Some(number) => text.replace(&format!("\"{PLACEHOLDER}\""), number),
        None => text,
    }
}

const PLACEHOLDER: &str = "@number@";

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

/// The number of values in `value`, including itself.
fn count(value: &Value) -> usize {
    1 + children(value).into_iter().map(count).sum::<usize>()
}

/// The value at index `at` in depth-first order.
fn find<'a>(value: &'a Value, at: &mut usize) -> Option<&'a Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    children(value)
        .into_iter()
        .find_map(|child| find(child, at))
}

fn find_mut<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|child| find_mut(child, at)),
        Value::Object(fields) => fields.values_mut().find_map(|child| find_mut(child, at)),
        _ => None,
    }
}

//! A small SVG reader that requires nested tags, quoted attributes and escaped text.

use std::collections::HashMap;

/// An SVG element. Its children refer to it by their `parent`.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: HashMap<String, String>,
    /// The text directly inside the element.
    pub(crate) text: String,
    /// Index of the enclosing element.
    pub(crate) parent: Option<usize>,
}

impl Element {
    pub(crate) fn number(&self, name: &str) -> f64 {
        let value = self.attributes.get(name);
        value
            .unwrap_or_else(|| panic!("{self:?} has no {name}"))
            .parse()
            .unwrap_or_else(|_| panic!("{name} of {self:?} is not a number"))
    }

    pub(crate) fn class(&self) -> &str {
        self.attributes.get("class").map_or("", String::as_str)
    }
}

/// Returns all elements in document order. Panics if the text is not well-formed.
pub(crate) fn read(text: &str) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut rest = text.trim_end();
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        assert!(!before.contains('>'), "bare '>' in {before:?}");
        let entities = before.split('&').skip(1);
        for entity in entities {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            assert!(
                known.iter().any(|k| entity.starts_with(k)),
                "bare '&' in {before:?}"
            );
        }
        match open.last() {
            Some(&i) => elements[i].text.push_str(before),
            None => assert!(
                before.trim().is_empty(),
                "text outside of the root: {before:?}"
            ),
        }
        let end = tag.find('>').expect("a closing '>'");
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            let i = open.pop().expect("an open element");
            assert_eq!(elements[i].name, name, "mismatched closing tag");
            continue;
        }
        assert!(
            open.len() + elements.len() == 0 || !open.is_empty(),
            "more than one root element"
        );
        let (inner, closed) = match inner.strip_suffix('/') {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        elements.push(Element {
            name: name.to_string(),
            attributes: attributes_of(attributes),
            text: String::new(),
            parent: open.last().copied(),
        });
        if !closed {
            open.push(elements.len() - 1);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "unclosed element");
    elements
}

fn attributes_of(mut text: &str) -> HashMap<String, String> {
    let mut attributes = HashMap::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return attributes;
        }
        let (name, rest) = text.split_once("=\"").expect("name=\"value\"");
        let (value, rest) = rest.split_once('"').expect("a closing quote");
        let previous = attributes.insert(name.to_string(), value.to_string());
        assert!(previous.is_none(), "{name} is repeated");
        text = rest;
    }
}

/// Left, top, right, bottom.
pub(crate) type Extent = (f64, f64, f64, f64);

/// The extent of a rectangle.
pub(crate) fn extent(rect: &Element) -> Extent {
    let (x, y) = (rect.number("x"), rect.number("y"));
    (x, y, x + rect.number("width"), y + rect.number("height"))
}

pub(crate) fn overlap(a: Extent, b: Extent) -> bool {
    // Coordinates are rounded to hundredths, so adjacent boxes may overlap by that much.
    let slack = 0.021;
    a.0 + slack < b.2 && b.0 + slack < a.2 && a.1 + slack < b.3 && b.1 + slack < a.3
}

/// Asserts that every rectangle and every text without a `transform` lies within the canvas.
pub(crate) fn assert_inside(elements: &[Element]) {
    let (width, height) = (elements[0].number("width"), elements[0].number("height"));
    for e in elements {
        if e.name == "rect" {
            let (left, top, rect_width, rect_height) = (
                e.number_or("x"),
                e.number_or("y"),
                e.number("width"),
                e.number("height"),
            );
            assert!(left >= 0.0 && top >= 0.0, "{e:?}");
            assert!(
                left + rect_width <= width + 0.01 && top + rect_height <= height + 0.01,
                "{e:?}"
            );
        }
        if e.name != "text" || e.attributes.contains_key("transform") {
            continue;
        }
        let text = e
            .text
            .replace("&amp;", "&")
            .replace("&lt;", "<")
            .replace("&gt;", ">");
        let size = e.number("font-size");
        // The average width of a character of Arial is 0.52 em.
        let text_width = text.chars().count() as f64 * 0.52 * size;
        let x = e.number("x");
        let left = match e.attributes.get("text-anchor").map(String::as_str) {
            Some("middle") => x - text_width / 2.0,
            Some("end") => x - text_width,
            _ => x,
        };
        assert!(
            left >= -0.5 && left + text_width <= width + 0.5,
            "clipped: {e:?} in {width}"
        );
        let y = e.number("y");
        assert!(
            y - size >= -1.0 && y <= height,
            "clipped: {e:?} in {height}"
        );
    }
}

impl Element {
    fn number_or(&self, name: &str) -> f64 {
        if self.attributes.contains_key(name) {
            self.number(name)
        } else {
            0.0
        }
    }
}

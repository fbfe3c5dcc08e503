//! Reads SVG as strictly as the tests need: tags that nest, attributes in quotes, text without bare
//! markup.

use std::collections::HashMap;

/// An element, without its children.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: HashMap<String, String>,
    /// Text directly inside.
    pub(crate) text: String,
    /// Index of the element around it.
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

/// All elements in document order; panics where the text is not well-formed.
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
            None => assert!(before.trim().is_empty(), "text outside: {before:?}"),
        }
        let end = tag.find('>').expect("a tag that ends");
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            let i = open.pop().expect("an open element");
            assert_eq!(elements[i].name, name, "closes another element");
            continue;
        }
        assert!(
            open.len() + elements.len() == 0 || !open.is_empty(),
            "one root"
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
    assert!(open.is_empty() && rest.is_empty(), "not closed");
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
        let twice = attributes.insert(name.to_string(), value.to_string());
        assert!(twice.is_none(), "{name} twice");
        text = rest;
    }
}

/// Left, top, right, bottom.
pub(crate) type Extent = (f64, f64, f64, f64);

/// Of a rectangle.
pub(crate) fn extent(rect: &Element) -> Extent {
    let (x, y) = (rect.number("x"), rect.number("y"));
    (x, y, x + rect.number("width"), y + rect.number("height"))
}

pub(crate) fn overlap(a: Extent, b: Extent) -> bool {
    // Coordinates are rounded to hundredths.
    let slack = 0.021;
    a.0 + slack < b.2 && b.0 + slack < a.2 && a.1 + slack < b.3 && b.1 + slack < a.3
}

/// Asserts that every text that is not turned, and every rectangle, lies on the canvas.
pub(crate) fn assert_inside(elements: &[Element]) {
    let (width, height) = (elements[0].number("width"), elements[0].number("height"));
    for e in elements {
        if e.name == "rect" {
            let (left, top, right, bottom) = (
                e.number_or("x"),
                e.number_or("y"),
                e.number("width"),
                e.number("height"),
            );
            assert!(left >= 0.0 && top >= 0.0, "{e:?}");
            assert!(
                left + right <= width + 0.01 && top + bottom <= height + 0.01,
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
        // Arial's characters are this wide on average.
        let wide = text.chars().count() as f64 * 0.52 * size;
        let x = e.number("x");
        let left = match e.attributes.get("text-anchor").map(String::as_str) {
            Some("middle") => x - wide / 2.0,
            Some("end") => x - wide,
            _ => x,
        };
        assert!(
            left >= -0.5 && left + wide <= width + 0.5,
            "cut: {e:?} in {width}"
        );
        let y = e.number("y");
        assert!(y - size >= -1.0 && y <= height, "cut: {e:?} in {height}");
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

//! Tests of the numbers and texts of pictures.

use oneport_pictures::Unit;
use oneport_pictures::svg::{At, bytes, escape, nice_step, scale, width, wrapped};

#[test]
fn numbers() {
    let at = |x| At(x).to_string();
    assert_eq!(
        [at(1.0), at(0.126), at(-0.001), at(2.5)],
        ["1", "0.13", "0", "2.5"]
    );
    assert_eq!(bytes(0), "0 B");
    assert_eq!(bytes(1023), "1023 B");
    assert_eq!(bytes(3 << 19), "1.5 MiB");
    assert_eq!(bytes(u64::MAX), "16 EiB");
    assert_eq!(nice_step(22.0, 11.0), 2.0);
    assert_eq!(nice_step(0.9, 3.0), 0.2);
    assert_eq!(scale(Unit::Nanoseconds, 5e4), (1e3, "us"));
}

#[test]
fn text_is_escaped_and_wrapped() {
    assert_eq!(escape("a<b>&\"c\"\u{1}"), "a&lt;b&gt;&amp;&quot;c&quot; ");
    let text = "one two three four five sixsixsixsixsixsixsixsixsixsix";
    for room in [40.0, 60.0, 1000.0] {
        let lines = wrapped(text, 12.0, room);
        assert!(lines.iter().all(|l| width(l, 12.0) <= room), "{lines:?}");
        let all: String = lines.concat().replace(' ', "");
        assert_eq!(all, text.replace(' ', ""));
    }
}

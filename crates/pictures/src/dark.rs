//! Pictures for a dark background.

use super::svg::hex;

/// Classes whose colour stays as it is: filled boxes of segments, and the text on them.
const KEPT: [&str; 2] = [".r", ".t"];

/// The same picture for a dark background: colours keep their hue and invert their lightness, but
/// for the colours of the segments, which stay.
///
/// `svg` is a picture of this module. Takes time linear in its length.
///
/// ```
/// use oneport_pictures::{Caption, Traffic, dark, traffic};
/// let schedule = oneport::Request::broadcast(4, 100).plan("binomial")?;
/// let light = traffic(&Traffic::new(&schedule), &Caption::new("binomial"))?;
/// assert!(light.contains("fill=\"#444\"") && !light.contains("fill=\"#bbbbbb\""));
/// assert!(dark(&light).contains("fill=\"#bbbbbb\"") && !dark(&light).contains("fill=\"#444\""));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn dark(svg: &str) -> String {
    // Text and lines without a colour of their own are black in a light picture.
    let svg = svg.replacen("<svg ", "<svg fill=\"#000\" ", 1);
    let mut result = String::with_capacity(svg.len());
    // A piece is a rule of the style sheet, or a tag with the text before it.
    for piece in svg.split_inclusive(['}', '>']) {
        let start = piece.trim_start();
        if start.starts_with(['<', '.']) && !KEPT.iter().any(|class| start.starts_with(class)) {
            invert_colors(piece, &mut result);
        } else {
            result.push_str(piece);
        }
    }
    result
}

/// Appends `piece` with all its colours inverted.
fn invert_colors(piece: &str, result: &mut String) {
    let mut parts = piece.split('#');
    result.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        // Not a reference such as `url(#head)`.
        let color = (result.ends_with(['"', ':']))
            .then(|| parse(&part[..digits]))
            .flatten();
        match color {
            Some(color) => *result += &(hex(inverted(color)) + &part[digits..]),
            None => *result += &format!("#{part}"),
        }
    }
}

/// Reads `fff` or `ffffff`.
fn parse(digits: &str) -> Option<[u8; 3]> {
    let value = u32::from_str_radix(digits, 16).ok()?;
    let [_, r, g, b] = value.to_be_bytes();
    let twice = |digit: u8| 17 * (digit & 15);
    match digits.len() {
        6 => Some([r, g, b]),
        3 => Some([g, b >> 4, b].map(twice)),
        _ => None,
    }
}

/// The colour of the same hue and saturation whose lightness (HSL) is the opposite.
fn inverted(color: [u8; 3]) -> [u8; 3] {
    let extremes = color.iter().max().zip(color.iter().min());
    let (max, min) = extremes.map_or((0, 0), |(&max, &min)| (max, min));
    color.map(|c| 255 - max + (c - min))
}

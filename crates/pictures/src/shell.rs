//! The shell of every HTML page: head, theme, what the page is about, style and scripts; the
//! chart kit. A page loads nothing from elsewhere.

use std::fmt::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use miniz_oxide::deflate::compress_to_vec_zlib;

use crate::svg::escape;

const STYLE: &str = include_str!("shell/shell.css");
/// Style and script of pages with charts. The script offers `looksOf`, `draw` and `fillLegend`.
const CHARTS: [&str; 2] = [
    include_str!("shell/charts.css"),
    include_str!("shell/charts.js"),
];

/// The script that offers `element`, `inflated` and `unpack` for packed data.
pub(crate) const UNPACK: &str = include_str!("shell/unpack.js");

/// The script that offers `linkPlayers`, behind [`UNPACK`].
pub(crate) const LINK: &str = include_str!("shell/link.js");

/// A text as scripts unpack it.
pub fn packed(text: &str) -> String {
    /// Level of compression: higher ones take longer and gain a few percent.
    const LEVEL: u8 = 8;
    BASE64_STANDARD.encode(compress_to_vec_zlib(text.as_bytes(), LEVEL))
}

/// An HTML page, put together from parts that are HTML themselves.
#[derive(Debug, Clone, Copy)]
pub struct Shell<'a> {
    /// The title of the window, as text.
    pub title: &'a str,
    /// The contents.
    pub body: &'a str,
    /// Style besides that of all pages.
    pub style: &'a str,
    /// The data that the script reads from the element `data`, and their media type.
    pub data: (&'a str, &'a str),
    /// The script.
    pub script: &'a str,
}

impl Shell<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let title = escape(self.title);
        let (media, data) = self.data;
        let Shell {
            body,
            style,
            script,
            ..
        } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}\
             <script type=\"{media}\" id=\"data\">{data}</script>\n\
             <script type=\"module\">\n{script}</script>\n</body>\n</html>\n"
        )
    }
}

/// What a page with charts is about: it stands above them.
#[derive(Debug, Clone, Default)]
pub struct Heading {
    /// The page's title.
    pub title: String,
    /// Names and values: machine, ranks, clock, date, command, ...
    pub summary: Vec<(&'static str, String)>,
    /// Warnings about the quality of the figures.
    pub warnings: Vec<String>,
}

impl Heading {
    /// A page of charts and tables below this heading. `rows` is JSON, which `script` reads.
    pub fn page(&self, body: &str, rows: &serde_json::Value, script: &str) -> String {
        let entry = |name: &str| self.summary.iter().find(|(n, _)| *n == name);
        let mut title = self.title.clone();
        for (_, value) in ["machine", "date"].into_iter().filter_map(entry) {
            title += &format!(", {value}");
        }
        let mut html = format!("<header>\n<h1>{}</h1>\n<dl>\n", escape(&self.title));
        for (name, value) in &self.summary {
            let value = match *name {
                "command" => command(value),
                _ => escape(value),
            };
            let _ = writeln!(html, "<dt>{}</dt><dd>{value}</dd>", escape(name));
        }
        html += "</dl>\n</header>\n";
        // Many notes leave the first screen to the charts.
        let many = self.warnings.len() > 2;
        if many {
            let count = self.warnings.len();
            let _ = writeln!(
                html,
                "<details class=\"notes\"><summary>{count} notes on these figures</summary>"
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(html, "<p class=\"warning\">{}</p>", escape(warning));
        }
        if many {
            html += "</details>\n";
        }
        html += "<div class=\"legend\" id=\"legend\"></div>\n<noscript><p class=\"warning\">The charts need scripts; \
                 the tables below have all numbers.</p></noscript>\n";
        let [style, kit] = CHARTS;
        Shell {
            title: &title,
            body: &(html + body),
            style,
            // Nothing in it may end the element.
            data: (
                "application/json",
                &rows.to_string().replace('<', "\\u003c"),
            ),
            script: &format!("{kit}{script}"),
        }
        .html()
    }
}

/// A command line. One of many files is folded, and leaves the first screen to the rest.
fn command(line: &str) -> String {
    /// Characters of some lines of a page.
    const MAX_CHARS: usize = 600;
    let whole = format!("<code>{}</code>", escape(line));
    if line.chars().count() <= MAX_CHARS {
        return whole;
    }
    let first: String = line.chars().take(MAX_CHARS / 6).collect();
    let first = escape(&first);
    format!("<details><summary><code>{first} ...</code></summary>{whole}</details>")
}

/// A figure for a chart, which the script draws into the element `id`. `note` is HTML.
pub fn chart(id: &str, title: &str, note: &str) -> String {
    format!(
        "<figure><h2>{title}</h2><p>{note}</p><div class=\"chart\" id=\"{id}\" tabindex=\"0\" role=\"group\" \
         aria-label=\"{title}: arrow keys go from point to point\"></div></figure>\n"
    )
}

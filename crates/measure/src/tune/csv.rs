//! CSV file of measured rows, from which an interrupted sweep continues.
//!
//! The file starts with the parameters of the sweep, one comment line `# name: value` each,
//! followed by a header and one line for each row. Times are in nanoseconds, sizes in bytes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Trial;
use oneport::error::{Error, Result};

/// The parameters of a sweep as names and values. Only a sweep with equal parameters can use its
/// rows.
pub type Parameters = Vec<(String, String)>;

const TITLE: &str = "# oneport tune, version 1";
const HEADER: &str = "bytes,algorithm,segment,segments,wall,min,p99,max,low,high,repetitions,model_time,best,best_segment,settled";

/// Formats the file, one line for each row.
pub fn write(parameters: &Parameters, rows: &[Trial]) -> String {
    let mut text = format!("{TITLE}\n");
    for (name, value) in parameters {
        let _ = writeln!(text, "# {name}: {}", one_line(value));
    }
    text += HEADER;
    text += "\n";
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    for row in rows {
        let w = &row.wall;
        let fields = (
            (row.bytes, &row.algorithm, row.segment, row.segments),
            (w.median, w.min, w.p99, w.max, w.low, w.high, w.repetitions),
            (row.model_time, row.best, row.best_segment, row.settled),
        );
        // Writing to memory does not fail.
        let _ = csv.serialize(fields);
    }
    let rows = csv.into_inner().unwrap_or_default();
    text + &String::from_utf8(rows).unwrap_or_default()
}

/// Reads parameters and rows of a file.
///
/// # Errors
/// If the text is not such a file; the message names the line.
pub fn read(text: &str) -> Result<(Parameters, Vec<Trial>)> {
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    if lines.next().map(|(_, line)| line.trim_end()) != Some(TITLE) {
        return Err(Error::malformed(format!(
            "not a file of measurements: the first line is not '{TITLE}'"
        )));
    }
    let mut parameters = Parameters::new();
    for (number, line) in lines.by_ref() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (name, value) = comment
                .split_once(':')
                .ok_or_else(|| Error::malformed(format!("line {number}: not '# name: value'")))?;
            parameters.push((name.to_string(), value.trim().to_string()));
        } else if line.trim_end() == HEADER {
            let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
            return Ok((parameters, read_rows(&rest.join("\n"), number as u64)?));
        } else {
            return Err(Error::malformed(format!(
                "line {number}: neither a parameter nor the header '{HEADER}'"
            )));
        }
    }
    Err(Error::malformed("a file of measurements without a header"))
}

/// Reads the rows of an interrupted sweep with these parameters, without those of a library's own
/// function. If the parameters differ, the error names the first difference.
pub fn resume(text: &str, parameters: &Parameters) -> Result<Vec<Trial>> {
    let (found, rows) = read(text)?;
    let of = |list: &Parameters, name: &str| {
        let value = list.iter().find(|(n, _)| n == name);
        value.map_or_else(|| "not given".to_string(), |(_, value)| one_line(value))
    };
    let names = parameters.iter().chain(&found).map(|(name, _)| name);
    for name in names {
        let (there, here) = (of(&found, name), of(parameters, name));
        if there != here {
            return Err(Error::usage(format!(
                "measured by another command: {name} is {there} there, {here} here"
            )));
        }
    }
    // The library's own function is measured again.
    let own = rows.into_iter().filter(|row| !row.model_time.is_nan());
    Ok(own.collect())
}

/// Reads the rows after the header, which is line `header` of the file.
fn read_rows(text: &str, header: u64) -> Result<Vec<Trial>> {
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns = csv::StringRecord::from_iter(HEADER.split(','));
    for record in csv.records() {
        let position = match &record {
            Ok(record) => record.position().map(csv::Position::line),
            Err(error) => error.position().map(csv::Position::line),
        };
        let number = header + position.unwrap_or(1);
        let record = record.ok().filter(|record| record.len() == columns.len());
        let row = record.and_then(|record| record.deserialize(Some(&columns)).ok());
        let row: Trial = row
            .filter(is_sound)
            .ok_or_else(|| Error::malformed(format!("line {number}: not a row of '{HEADER}'")))?;
        if !seen.insert((row.bytes, row.algorithm.clone(), row.segment)) {
            return Err(Error::malformed(format!(
                "line {number}: a second row for {} bytes, {}, segment {}",
                row.bytes, row.algorithm, row.segment
            )));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Whether a row can have been measured.
fn is_sound(row: &Trial) -> bool {
    row.segment > 0
        && row.segments > 0
        && row.wall.repetitions > 0
        && row.wall.low <= row.wall.high
        && (row.model_time.is_nan() || row.model_time >= 0.0)
        && !row.model_time.is_infinite()
}

fn one_line(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

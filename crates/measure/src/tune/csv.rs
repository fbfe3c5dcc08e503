//! CSV file of measured rows, from which an interrupted sweep continues.
//!
//! The file starts with the parameters of the sweep, one comment line `# name: value` each,
//! followed by a header and one line for each row. Times are in nanoseconds, sizes in bytes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::str::FromStr;

use super::{Row, Summary};
use oneport::error::{Error, Result};

/// The parameters of a sweep as names and values. Only a sweep with equal parameters can use its
/// rows.
pub type Parameters = Vec<(String, String)>;

const TITLE: &str = "# oneport tune, version 1";
const HEADER: &str = "bytes,algorithm,segment,segments,wall,min,p99,max,low,high,repetitions,model_time,best,best_segment,settled";

/// Formats the file, one line for each row.
pub fn write(parameters: &Parameters, rows: &[Row]) -> String {
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
pub fn read(text: &str) -> Result<(Parameters, Vec<Row>)> {
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
/// function.
///
/// # Errors
/// The errors of [`read`], and an error if the parameters differ, which names the first difference.
pub fn resume(text: &str, parameters: &Parameters) -> Result<Vec<Row>> {
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
    Ok(rows
        .into_iter()
        .filter(|row| !row.model_time.is_nan())
        .collect())
}

/// Reads the rows after the header, which is line `header` of the file.
fn read_rows(text: &str, header: u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    for record in csv.records() {
        let position = match &record {
            Ok(record) => record.position().map(csv::Position::line),
            Err(error) => error.position().map(csv::Position::line),
        };
        let number = header + position.unwrap_or(1);
        let row = record
            .ok()
            .and_then(|record| read_row(&record))
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

fn read_row(record: &csv::StringRecord) -> Option<Row> {
    let mut fields = record.iter();
    let row = Row {
        bytes: field(&mut fields)?,
        algorithm: field(&mut fields)?,
        segment: field(&mut fields)?,
        segments: field(&mut fields)?,
        wall: {
            let [median, min, p99, max, low, high] = [(); 6].map(|()| field(&mut fields));
            Summary {
                median: median?,
                min: min?,
                p99: p99?,
                max: max?,
                low: low?,
                high: high?,
                repetitions: field(&mut fields)?,
            }
        },
        model_time: field(&mut fields)?,
        best: field(&mut fields)?,
        best_segment: field(&mut fields)?,
        settled: field(&mut fields)?,
    };
    let sound = row.segment > 0
        && row.segments > 0
        && row.wall.repetitions > 0
        && row.wall.low <= row.wall.high
        && (row.model_time.is_nan() || row.model_time >= 0.0)
        && !row.model_time.is_infinite();
    (sound && fields.next().is_none()).then_some(row)
}

fn field<'a, T: FromStr>(fields: &mut impl Iterator<Item = &'a str>) -> Option<T> {
    fields.next()?.parse().ok()
}

fn one_line(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        vec![
            ("collective".into(), "reduce".into()),
            ("cost".into(), "alpha 1: 2".into()),
        ]
    }

    fn rows() -> Vec<Row> {
        let wall = Summary::of(&[5, 7, 9, 4, 6, 8, 30]).unwrap();
        let row = |segment, model_time| Row {
            bytes: 64,
            algorithm: "chain".into(),
            segment,
            segments: 64usize.div_ceil(segment as usize),
            wall,
            model_time,
            best: segment == 8,
            best_segment: segment == 8,
            settled: segment == 8,
        };
        vec![row(8, 7.25), row(16, 1e20 / 3.0)]
    }

    #[test]
    fn round_trip() {
        let text = write(&parameters(), &rows());
        assert_eq!(read(&text).unwrap(), (parameters(), rows()));
        assert_eq!(resume(&text, &parameters()).unwrap(), rows());
        assert_eq!(read(&text.replace('\n', "\r\n")).unwrap().1, rows());
        // A library's own function has no model time, and is measured again.
        let of_library = text.replace("7.25", "NaN");
        let found = read(&of_library).unwrap().1;
        assert!(found.iter().any(|row| row.model_time.is_nan()));
        let resumed = resume(&of_library, &parameters()).unwrap();
        assert!(
            resumed.len() < found.len() && resumed.iter().all(|row| row.model_time.is_finite())
        );
    }

    #[test]
    fn another_sweep_is_refused() {
        let text = write(&parameters(), &rows());
        let mut other = parameters();
        other[0].1 = "broadcast".into();
        let error = resume(&text, &other).unwrap_err().to_string();
        assert!(
            error.contains("collective is reduce there, broadcast here"),
            "{error}"
        );
        other[0] = parameters().swap_remove(0);
        other.push(("ranks".into(), "8".into()));
        let error = resume(&text, &other).unwrap_err().to_string();
        assert!(
            error.contains("ranks is not given there, 8 here"),
            "{error}"
        );
        other.truncate(1);
        assert!(resume(&text, &other).is_err());
    }

    #[test]
    fn broken_files_are_refused() {
        let text = write(&parameters(), &rows());
        for broken in [
            String::new(),
            "bytes,wall\n1,2\n".into(),
            text.replace("best_segment", "x"),
            text.replace("chain,8,", "chain,0,"),
            text.replace("chain,8,", "chain,16,"),
            text.replace("chain,8,", "chain,"),
            text.replace("true", "yes"),
            text.replace("7.25", "inf"),
            text.lines().take(3).collect::<Vec<_>>().join("\n"),
            text.trim_end().to_string() + ",1",
            text[..text.len() - 12].to_string(),
        ] {
            let error = read(&broken).unwrap_err();
            assert!(error.is_usage(), "{error}");
        }
    }
}

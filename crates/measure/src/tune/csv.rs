//! CSV file of measured rows, from which a sweep continues, and which grows by sizes and ranks.
//!
//! The file starts with the parameters of the sweep, one comment line `# name: value` each,
//! followed by a header and one line for each row. Times are in nanoseconds, sizes in bytes. Sweeps
//! of several numbers of ranks have their parameters one after another; the last column says which
//! a row belongs to.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Trial;
use oneport::error::{Error, Result};

/// The parameters of a sweep as names and values.
pub type Parameters = Vec<(String, String)>;

/// The rows of one number of ranks, and their parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// What the rows were measured with.
    pub parameters: Parameters,
    /// The rows.
    pub rows: Vec<Trial>,
}

/// What a file holds for a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resumed {
    /// The rows of its sizes, those of a library's own function included.
    pub known: Vec<Trial>,
    /// If they were measured in another place: which, such as `machine is A there, B here`, and the
    /// parameters there.
    pub elsewhere: Option<(String, Parameters)>,
    /// What else is in the file.
    pub others: Vec<Block>,
}

/// Parameters that say where a sweep was measured.
const PLACE: [&str; 3] = ["machine", "cores", "processes"];
/// Parameters that may differ between numbers of ranks. The algorithms follow from them.
const OF_RANKS: [&str; 3] = ["ranks", "algorithms", "cores"];

const TITLE: &str = "# oneport tune, version 1";
const HEADER: &str = "bytes,algorithm,segment,segments,wall,min,p99,max,low,high,repetitions,model_time,best,best_segment,settled,ranks";

/// The header, but for the column that earlier versions did not write.
fn header_without_ranks() -> &'static str {
    HEADER.trim_end_matches(",ranks")
}

impl Block {
    fn value(&self, name: &str) -> Option<String> {
        let found = self.parameters.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| one_line(value))
    }

    /// The number of ranks, as it is written.
    fn ranks(&self) -> String {
        self.value("ranks").unwrap_or_default()
    }

    fn sizes(&self) -> BTreeSet<u64> {
        let sizes = self.value("sizes").unwrap_or_default();
        sizes
            .split(' ')
            .filter_map(|size| size.parse().ok())
            .collect()
    }
}

/// Formats a file of these rows, and of what else was in it.
pub fn write(parameters: &Parameters, rows: &[Trial], others: &[Block]) -> String {
    let mut own = Block {
        parameters: parameters.clone(),
        rows: rows.to_vec(),
    };
    let is_own = |block: &&Block| block.ranks() == own.ranks();
    let (mut sizes, mut all) = (own.sizes(), own.rows.clone());
    for same in others.iter().filter(is_own) {
        sizes.extend(same.sizes());
        all.extend(same.rows.iter().cloned());
    }
    let mut blocks: Vec<Block> = others.iter().filter(|b| !is_own(b)).cloned().collect();
    all.sort_by_key(|row| row.bytes);
    own.rows = all;
    if let Some((_, value)) = own.parameters.iter_mut().find(|(name, _)| name == "sizes") {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        *value = sizes.join(" ");
    }
    blocks.push(own);
    blocks.sort_by_key(|block| block.ranks().parse::<usize>().unwrap_or(0));
    format(&blocks)
}

fn format(blocks: &[Block]) -> String {
    let mut text = format!("{TITLE}\n");
    for (name, value) in blocks.iter().flat_map(|block| &block.parameters) {
        let _ = writeln!(text, "# {name}: {}", one_line(value));
    }
    text += HEADER;
    text += "\n";
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    for block in blocks {
        for row in &block.rows {
            let w = &row.wall;
            let fields = (
                (row.bytes, &row.algorithm, row.segment, row.segments),
                (w.median, w.min, w.p99, w.max, w.low, w.high, w.repetitions),
                (row.model_time, row.best, row.best_segment, row.settled),
                block.ranks(),
            );
            // Writing to memory does not fail.
            let _ = csv.serialize(fields);
        }
    }
    let rows = csv.into_inner().unwrap_or_default();
    text + &String::from_utf8(rows).unwrap_or_default()
}

/// Reads the parameters and rows of a file, a block for each number of ranks.
///
/// # Errors
/// If the text is not such a file; the message names the line.
pub fn read(text: &str) -> Result<Vec<Block>> {
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    if lines.next().map(|(_, line)| line.trim_end()) != Some(TITLE) {
        return Err(Error::malformed(format!(
            "not a file of measurements: the first line is not '{TITLE}'"
        )));
    }
    let mut blocks = vec![Block::default()];
    for (number, line) in lines.by_ref() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (name, value) = comment
                .split_once(':')
                .ok_or_else(|| Error::malformed(format!("line {number}: not '# name: value'")))?;
            // The first name again: the parameters of the next number of ranks.
            if blocks[0]
                .parameters
                .first()
                .is_some_and(|(first, _)| first == name)
            {
                blocks.push(Block::default());
            }
            if let Some(block) = blocks.last_mut() {
                let parameter = (name.to_string(), value.trim().to_string());
                block.parameters.push(parameter);
            }
        } else if [HEADER, header_without_ranks()].contains(&line.trim_end()) {
            let ranks: BTreeSet<String> = blocks.iter().map(Block::ranks).collect();
            if ranks.len() < blocks.len() {
                return Err(Error::malformed(
                    "two sets of parameters for one number of ranks",
                ));
            }
            let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
            read_rows(
                &rest.join("\n"),
                number as u64,
                line.trim_end(),
                &mut blocks,
            )?;
            return Ok(blocks);
        } else {
            return Err(Error::malformed(format!(
                "line {number}: neither a parameter nor the header '{HEADER}'"
            )));
        }
    }
    Err(Error::malformed("a file of measurements without a header"))
}

/// Reads what a file holds for a sweep with these parameters. Its sizes may be others, and so may
/// the place where it was measured. A file of other numbers of ranks only must agree in all that
/// does not follow from these, the place included.
///
/// # Errors
/// If the text is not such a file, or of another sweep: the error names the first difference.
pub fn resume(text: &str, parameters: &Parameters) -> Result<Resumed> {
    let mut blocks = read(text)?;
    let mut own = Block {
        parameters: parameters.clone(),
        rows: Vec::new(),
    };
    let same = blocks.iter().position(|block| block.ranks() == own.ranks());
    let other = &blocks[same.unwrap_or(0)];
    let mut elsewhere = None;
    for (name, _) in own.parameters.iter().chain(&other.parameters) {
        let value = |block: &Block| {
            let value = block.value(name);
            match same {
                // The library's name, without the number of its processes.
                None if name == "processes" => {
                    value.and_then(|v| Some(v.rsplit_once(", ")?.0.to_string()))
                }
                _ => value,
            }
        };
        let may_differ = name == "sizes" || same.is_none() && OF_RANKS.contains(&&**name);
        let (there, here) = (value(other), value(&own));
        if may_differ || there == here {
            continue;
        }
        let [there, here] = [there, here].map(|v| v.unwrap_or_else(|| "not given".into()));
        let difference = format!("{name} is {there} there, {here} here");
        if same.is_none() || !PLACE.contains(&&**name) {
            return Err(Error::usage(format!(
                "measured by another command: {difference}"
            )));
        }
        elsewhere.get_or_insert((difference, other.parameters.clone()));
    }
    let Some(same) = same else {
        let others = blocks;
        return Ok(Resumed {
            others,
            ..Resumed::default()
        });
    };
    let sizes = own.sizes();
    // A sweep that names no sizes has them all.
    let wanted = |row: &Trial| sizes.is_empty() || sizes.contains(&row.bytes);
    let rows = std::mem::take(&mut blocks[same].rows);
    let (known, rest) = rows.into_iter().partition(wanted);
    own = blocks.swap_remove(same);
    own.rows = rest;
    blocks.push(own);
    Ok(Resumed {
        known,
        elsewhere,
        others: blocks,
    })
}

/// Reads the rows after the header, which is line `number` of the file, into their blocks.
fn read_rows(text: &str, number: u64, header: &str, blocks: &mut [Block]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns = csv::StringRecord::from_iter(header.split(','));
    for record in csv.records() {
        let position = match &record {
            Ok(record) => record.position().map(csv::Position::line),
            Err(error) => error.position().map(csv::Position::line),
        };
        let number = number + position.unwrap_or(1);
        let record = record.ok().filter(|record| record.len() == columns.len());
        let row = record
            .as_ref()
            .and_then(|record| record.deserialize(Some(&columns)).ok());
        let row: Trial = row
            .filter(is_sound)
            .ok_or_else(|| Error::malformed(format!("line {number}: not a row of '{header}'")))?;
        let ranks = record.as_ref().filter(|_| header == HEADER);
        let ranks = ranks.and_then(|record| record.get(columns.len() - 1));
        let block = blocks
            .iter()
            .position(|block| ranks.is_none_or(|ranks| block.ranks() == ranks));
        let block = block.ok_or_else(|| {
            let ranks = ranks.unwrap_or_default();
            Error::malformed(format!("line {number}: no parameters for '{ranks}' ranks"))
        })?;
        if !seen.insert((block, row.bytes, row.algorithm.clone(), row.segment)) {
            return Err(Error::malformed(format!(
                "line {number}: a second row for {} bytes, {}, segment {}",
                row.bytes, row.algorithm, row.segment
            )));
        }
        blocks[block].rows.push(row);
    }
    Ok(())
}

/// Whether a row can have been measured.
fn is_sound(row: &Trial) -> bool {
    row.segment > 0
        && row.segments > 0
        && row.wall.repetitions > 0
        && row.wall.low <= row.wall.high
        && row.wall.min <= row.wall.median
        && row.wall.median <= row.wall.max
        && !row.algorithm.contains(char::is_control)
        && (row.model_time.is_nan() || row.model_time >= 0.0)
        && !row.model_time.is_infinite()
}

fn one_line(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! The vector of the options: its size, its segments, its elements.

use anyhow::{Context, Result, bail, ensure};
use oneport::internal::budget::memory::MAX_VECTOR_BYTES;
use oneport::internal::budget::size::MAX_STEPS;
use oneport::internal::numbers::index;
use oneport::plan::Segments;
use oneport::plan::space::SegmentChoice;
use oneport::run::ElementType;

use crate::args::Vector;
use crate::bits::ShownBits;
use crate::forms::SegmentCount;
use crate::units::parse_size;

const DEFAULT_BYTES: &str = "64KiB";

impl Vector {
    pub(crate) fn element_bytes(&self) -> u64 {
        self.dtype.map_or(1, ElementType::bytes)
    }

    pub(crate) fn keep_order(&self) -> bool {
        self.ordered || !self.op().commutes()
    }

    /// Whether all ranks are to get the same bits, where the order of combining decides them.
    pub(crate) fn same_bits(&self) -> bool {
        self.same_bits.is_some() && ShownBits::matter(self)
    }

    pub(crate) fn elements(&self, what: &str, bytes: u64) -> Result<usize> {
        let size = self.element_bytes();
        ensure!(
            bytes.is_multiple_of(size),
            "{what} of {bytes} bytes is not a whole number of elements of {size} bytes (--dtype {})",
            self.dtype.unwrap_or(ElementType::U8)
        );
        usize::try_from(bytes / size)
            .with_context(|| format!("{what} of {bytes} bytes is too large"))
    }

    /// Elements of the vector of `--bytes`, or of the default; `None` if segments are listed.
    pub(crate) fn whole_elements(&self) -> Result<Option<usize>> {
        if !self.segment_sizes.is_empty() {
            return Ok(None);
        }
        let bytes = match &self.bytes {
            Some(sizes) => sizes.one("--bytes")?,
            None => parse_size(DEFAULT_BYTES).map_err(anyhow::Error::msg)?,
        };
        self.elements("a vector", bytes).map(Some)
    }

    /// Returns the vector in one segment, and the requested segments.
    ///
    /// `given` is the size in elements if block sizes determine it.
    pub(super) fn segments(&self, given: Option<usize>) -> Result<(Segments, SegmentChoice)> {
        if !self.segment_sizes.is_empty() {
            return self.listed_segments(given);
        }
        let vector = match given {
            Some(given) => given,
            None => self.whole_elements()?.unwrap_or(0),
        };
        let count = match (self.segment, self.segments) {
            (Some(0), _) => bail!("--segment is 0: a segment has at least one element"),
            (_, Some(SegmentCount::Count(0))) => {
                bail!("--segments is 0: a vector has at least one segment")
            }
            (Some(segment), _) => vector.div_ceil(self.elements("a segment", segment)?) as u64,
            (None, Some(SegmentCount::Count(count))) => count.min(vector) as u64,
            (None, Some(SegmentCount::Unequal)) => {
                return Ok((Segments::whole(vector), SegmentChoice::BestUnequal));
            }
            (None, None) => return Ok((Segments::whole(vector), SegmentChoice::Best)),
        };
        ensure!(
            count <= MAX_STEPS,
            "{count} segments are more than this program's limit of {MAX_STEPS}: take larger segments"
        );
        let segments = match self.segment {
            Some(segment) => Segments::of_size(vector, self.elements("a segment", segment)?)?,
            None => Segments::of_count(vector, index(count.max(1)))?,
        };
        Ok((Segments::whole(vector), SegmentChoice::Given(segments)))
    }

    /// Like [`Vector::segments`], with individual sizes.
    fn listed_segments(&self, given: Option<usize>) -> Result<(Segments, SegmentChoice)> {
        if self.segment_sizes.contains(&0) {
            bail!("--segment-sizes has a 0: a segment has at least one element");
        }
        let sum = self.segment_sizes.iter().try_fold(0u64, |a, &b| {
            a.checked_add(b).filter(|&n| n <= MAX_VECTOR_BYTES)
        });
        let Some(sum) = sum else {
            bail!("--segment-sizes add up to more than this program's limit of 2^60 bytes");
        };
        if let Some(bytes) = &self.bytes
            && let bytes = bytes.one("--bytes")?
            && bytes != sum
        {
            bail!("--segment-sizes add up to {sum} bytes, not to the {bytes} of --bytes");
        }
        let sizes: Result<Vec<usize>> = self
            .segment_sizes
            .iter()
            .map(|&bytes| self.elements("a segment", bytes))
            .collect();
        let segments = Segments::of_sizes(sizes?)?;
        if let Some(given) = given.filter(|&n| n != segments.elements()) {
            bail!(
                "--segment-sizes add up to {} elements, the blocks call for {given}",
                segments.elements()
            );
        }
        let whole = Segments::whole(segments.elements());
        Ok((whole, SegmentChoice::Given(segments)))
    }
}

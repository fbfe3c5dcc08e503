//! Gathering of circulant schedules: each rank computes its own receive schedule and gathers those
//! of the other ranks.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", section 2.4 and Algorithm 7.
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, `q = ceil(log2 p)`.
//! - Rounds: `q`.
//! - Time: `q alpha + (p-1) beta 8 ceil(q/8)`, and `O(log p)` per rank to compute its own schedule.
//! - Volume: each rank receives `p - 1` blocks of `q` bytes, padded to whole elements of 8 bytes.
//! - Restrictions: none.
//!
//! The irregular allgather (`circulant-blocks`) needs the receive schedules of all ranks at every
//! rank. To compute all of them would take each rank `O(p log p)` time.
//! Gathering them instead takes the time above.
//!
//! In round `k` rank `r` has the schedules of ranks `r` to `r + skip[k] - 1` (modulo `p`), in this
//! order. It sends rank `r - skip[k]` as many of them as that rank still lacks.
//!
//! Example: for `p = 3`, with skips 1 and 2, ranks send their own schedules 0→2, 1→0 and 2→1 in
//! round 0; then 0→1, 1→2 and 2→0.

use oneport::internal::circulant::schedule::Circulant;
use oneport::run::{Bidirectional, Endpoint};
use oneport::schedule::Span;
use oneport::{Error, ErrorKind, Result};

/// Bytes of an element of the buffer.
const BYTES: usize = size_of::<u64>();

/// Number of elements that [`gather_schedules`] needs in every rank's buffer.
pub(crate) fn control_elements(ranks: usize) -> usize {
    let rounds = ranks.max(1).next_power_of_two().ilog2() as usize;
    ranks.saturating_mul(rounds.div_ceil(BYTES))
}

/// Gathers the receive schedules of all ranks. All ranks call it, and each computes its own
/// schedule.
///
/// Returns `recv[r * q + k]`, in the form of `Allgatherv::with_schedules`. The first
/// [`control_elements`] elements of the buffer are overwritten.
///
/// # Errors
/// When the buffer is too short, or as described at [`Endpoint`].
pub(crate) fn gather_schedules(endpoint: &mut Endpoint<'_, u64, Bidirectional>) -> Result<Vec<i8>> {
    let (p, me) = (endpoint.ranks(), endpoint.rank());
    let graph = Circulant::new(p);
    let q = graph.rounds();
    let block = q.div_ceil(BYTES);
    let needed = control_elements(p);
    if endpoint.data().len() < needed {
        return Err(usage(format!(
            "the buffer has fewer than the {needed} elements that the schedules of {p} ranks take"
        )));
    }
    let mut own = vec![0; q];
    graph.recv_into(me, &mut own);
    for (element, bytes) in endpoint.data_mut()?.iter_mut().zip(own.chunks(BYTES)) {
        let mut padded = [0; BYTES];
        for (to, from) in padded.iter_mut().zip(bytes) {
            *to = from.cast_unsigned();
        }
        *element = u64::from_le_bytes(padded);
    }
    for round in graph.skips().windows(2) {
        let (skip, next) = (round[0], round[1]);
        let len = (next - skip) * block;
        let held = Span::new(0, len);
        let lacked = Span::new(skip * block, len);
        endpoint.exchange((me + p - skip) % p, held, (me + skip) % p, lacked)?;
    }
    let mut recv = Vec::with_capacity(p * q);
    for r in 0..p {
        let place = (r + p - me) % p;
        let elements = &endpoint.data()[place * block..][..block];
        let bytes = elements.iter().flat_map(|e| e.to_le_bytes()).take(q);
        recv.extend(bytes.map(u8::cast_signed));
    }
    Ok(recv)
}

/// An error of the caller's.
fn usage(message: impl Into<String>) -> Error {
    ErrorKind::Usage(message.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneport::internal::circulant::tables::Tables;
    use oneport::machine::CostModel;
    use oneport::run::{Operator, ScopeOptions, ScopeOutcome, Team};

    fn gathered(p: usize, elements: usize) -> Result<ScopeOutcome<Vec<i8>>> {
        let mut options = ScopeOptions::new(Operator::named("sum")?);
        options.cost = CostModel::new(100.0, 1.0);
        let mut buffers = vec![vec![u64::MAX; elements]; p];
        Team::new(p)?.scope(&mut buffers, &options, gather_schedules)
    }

    #[test]
    fn gathered_schedules_are_those_computed() {
        for p in [1, 2, 3, 9, 20, 33] {
            let graph = Circulant::new(p);
            let q = graph.rounds();
            let outcome = gathered(p, control_elements(p)).unwrap();
            let computed = Tables::new(&graph).recv;
            assert!(
                outcome.results.iter().all(|recv| *recv == computed),
                "p={p}"
            );
            let time = (100 * q + 8 * q.div_ceil(8) * (p - 1)) as f64;
            assert_eq!(outcome.model_time(), time);
        }
    }

    #[test]
    fn short_buffers_are_refused() {
        let refused = gathered(3, 2).unwrap_err().to_string();
        assert!(refused.contains("3 elements"), "{refused}");
    }
}

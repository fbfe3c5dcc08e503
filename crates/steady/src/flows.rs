//! Bounds the throughput of broadcasts and multicasts by flows: each target receives every message
//! over edges that carry it once for all targets at best.
//!
//! The program is `maximise r` with rates `n_e` of messages on the edges. For each target there is
//! a flow of value `r` from the source with capacities `n_e`, and no port is busy for more than all
//! the time. This is a polynomial program. A flow of value `r` exists when no cut has less
//! capacity, so it is solved by cuts on demand, which maximum flows find. In the dual form, the
//! cuts are columns: `maximise sum of l_C` over cuts `C`. The cuts with an edge weigh at most its
//! cost times the prices of its ports, and these prices add up to 1. The throughput is 1 over the
//! optimum.
//!
//! - Broadcasts with bidirectional ports reach the bound (Edmonds' disjoint arborescences), so it
//!   is a second way to compute their throughput.
//! - For multicasts it is an upper bound: the load of an edge is the *largest* of the flows to the
//!   targets. A series of scatters gives a lower bound, where the load is their *sum*.
//! - For unidirectional ports, odd sets are left out, so it is an upper bound.

use dashu_int::{IBig, UBig};

use super::cut::minimum_cut;
use super::fraction::{Fraction, whole};
use super::lp::{Column, Pricing, maximise};
use super::platform::Platform;
use super::ports::PortGraph;
use super::weight::Weight;
use oneport::error::{Error, Result};
use oneport::machine::Ports;

/// Returns an upper bound of the throughput of multicasts to the platform's targets (of broadcasts,
/// if all nodes are targets). Broadcasts with bidirectional ports reach it.
///
/// ```
/// use oneport::Ports;
/// use oneport_steady::{flow_bound, generate};
/// assert_eq!(flow_bound(&generate("fig3", 0)?, Ports::BI)?.to_string(), "1");
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Source
/// The flow program for broadcasts and multicasts of Beaumont, Marchal and Robert. Broadcasts reach
/// it by J. Edmonds (1973): edge-disjoint branchings.
///
/// # Complexity
/// A linear program with a row for each edge. Its columns are cuts, generated on demand by one
/// maximum flow per target.
///
/// # Errors
/// When a target cannot be reached.
pub fn flow_bound(platform: &Platform, ports: Ports) -> Result<Fraction> {
    platform.reaches(platform.source(), platform.targets(), false)?;
    let unit = platform.unit();
    let platform = &platform.in_units_of(&unit);
    let graph = PortGraph::new(platform, ports, false);
    let edges = platform.edges();
    let mut of_port: Vec<Vec<(usize, Fraction)>> = vec![Vec::new(); graph.len()];
    for (i, e) in edges.iter().enumerate() {
        let (a, b) = graph.links()[i];
        for port in [a, b] {
            of_port[port].push((i, -e.cost.clone()));
        }
    }
    let ports = of_port.into_iter().map(|mut entries| {
        entries.push((edges.len(), whole(1)));
        Column::new(Fraction::ZERO, entries, ())
    });
    let mut bounds = vec![Fraction::ZERO; edges.len()];
    bounds.push(whole(1));
    let optimum = maximise(&bounds, ports.collect(), &mut Cuts { platform })?;
    if optimum.value.is_zero() {
        return Err(Error::system("no cut separates source and targets"));
    }
    Ok(whole(1) / (optimum.value * unit))
}

struct Cuts<'a> {
    platform: &'a Platform,
}

impl Cuts<'_> {
    fn smallest<W: Weight>(&self, capacity: &[W]) -> Vec<Column<()>> {
        let platform = self.platform;
        let (source, none) = (platform.source(), W::default());
        let arcs = platform.ends();
        let columns = platform.targets().iter().filter_map(|&target| {
            let side = minimum_cut(platform.nodes(), &arcs, capacity, &none, (source, target))?;
            let crossing = (0..arcs.len()).filter(|&i| side[arcs[i].0] && !side[arcs[i].1]);
            let entries = crossing.map(|e| (e, whole(1)));
            Some(Column::new(whole(1), entries.collect(), ()))
        });
        columns.collect()
    }
}

impl Pricing<()> for Cuts<'_> {
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<()>> {
        self.smallest(&prices[..prices.len() - 1])
    }

    fn improve_exactly(&mut self, prices: &[IBig], _: &UBig) -> Vec<Column<()>> {
        self.smallest(&prices[..prices.len() - 1])
    }
}

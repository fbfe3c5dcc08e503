//! The check of a certificate of `oneport steady`.

use oneport::ErrorKind;
use oneport_steady::Solution;

use crate::forms::AlgorithmNames;
use crate::prelude::*;

pub(super) fn json(
    (solution, wrong): (Option<&Solution>, Option<&Error>),
) -> impl Answered + use<> {
    record! {
        ok: wrong.is_none(),
        errors: wrong.iter().map(|error| record! { message: error.to_string() }).collect::<Vec<_>>(),
        collective (optional): solution.map(|s| s.operation.name()),
        ports (optional): solution.map(|s| s.ports.name()),
        /// It is reached, and nothing is faster.
        throughput (optional): solution.map(|s| s.throughput.to_string()),
    }
}

/// Checks the file, and that no other option is given with it.
pub(super) fn check(common: &Common, file: &Source, caller: &Caller) -> Result<Answer> {
    let plain = Common {
        algorithm: AlgorithmNames::Auto,
        json: common.json,
        ..Common::default()
    };
    ensure!(
        format!("{common:?}") == format!("{plain:?}"),
        "--certificate FILE is checked by itself: of the other options it takes --json alone"
    );
    let (solution, wrong) = match Solution::checked(&file.read()?) {
        Ok(solution) => (Some(solution), None),
        Err(error) if matches!(error.kind(), ErrorKind::Wrong(_)) => (None, Some(error)),
        Err(error) => return Err(error).context(file.name()),
    };
    let solution = solution.as_ref();
    let report = json((solution, wrong.as_ref()));
    let answer = answer(caller, common.json, &report, |out| {
        let Some(solution) = solution else {
            return output::summary(out, &[("result", "WRONG".into())]);
        };
        let (platform, throughput) = (solution.platform(), &solution.throughput);
        let links = counted(platform.edges().len(), "link");
        let (operation, ports) = (solution.operation.name(), solution.ports.name());
        let routes = counted(solution.routes.len(), "route");
        let matchings = counted(solution.slots.len(), "matching");
        let summary = [
            ("platform", format!("{} nodes, {links}", platform.nodes())),
            ("series of", format!("{operation}, {ports} ports")),
            (
                "reached",
                format!("{throughput} a time unit, by {routes} in {matchings}"),
            ),
            (
                "at most",
                format!("{throughput} a time unit, by prices of ports"),
            ),
            ("result", "correct".into()),
        ];
        output::summary(out, &summary)
    })?;
    Ok(match wrong {
        Some(error) => answer.but_wrong(format!("{}: {error}", file.name())),
        None => answer,
    })
}

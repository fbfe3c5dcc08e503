//! The certificate's file, checked as a reader of the documentation checks it: with numbers of its
//! own, and without a platform.

use oneport::{ErrorKind, Ports};
use oneport_steady::{
    Fraction, Operation, Platform, Solution, SolveMethod, generate, parse_fraction, solve,
};
use serde_json::Value;

fn number(value: &Value) -> Fraction {
    parse_fraction(value.as_str().unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<Fraction> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(index).collect()
}

fn total(values: impl IntoIterator<Item = Fraction>) -> Fraction {
    values
        .into_iter()
        .fold(Fraction::ZERO, |sum, value| sum + value)
}

/// Whether the file proves its bound.
fn proves(file: &Value) -> bool {
    let links = file["links"].as_array().unwrap();
    let combining = file["combining"].as_array().unwrap();
    let activities: Vec<&Value> = links.iter().chain(combining).collect();
    let ports = numbers(&file["port_prices"]);
    let sets = file["odd_sets"].as_array().unwrap();
    let sets: Vec<(Vec<usize>, Fraction)> = sets
        .iter()
        .map(|set| (indices(&set["ports"]), number(&set["price"])))
        .collect();
    // No price is negative, and the ports of an activity pay for it.
    let mut all = ports.iter().chain(sets.iter().map(|(_, price)| price));
    let mut holds = all.all(|price| *price >= Fraction::ZERO);
    for (activity, pair) in activities.iter().zip(file["ports_of"].as_array().unwrap()) {
        let (a, b) = (index(&pair[0]), index(&pair[1]));
        let both = sets
            .iter()
            .filter(|(set, _)| set.contains(&a) && set.contains(&b));
        let paid = &ports[a] + &ports[b] + total(both.map(|(_, price)| price.clone()));
        holds &= paid >= number(&activity["price"]);
    }
    // All ports together are worth no more than the bound.
    let of_sets = sets.iter().map(|(set, price)| {
        assert_eq!(set.len() % 2, 1);
        Fraction::from((set.len() - 1) / 2) * price
    });
    holds &= total(ports.iter().cloned()) + total(of_sets) <= number(&file["bound"]);
    // No operation costs less than 1.
    let cost = |value: &Value| number(&value["cost"]) * number(&value["price"]);
    let costs: Vec<(usize, usize, Fraction)> = links
        .iter()
        .map(|link| (index(&link["src"]), index(&link["dst"]), cost(link)))
        .collect();
    let combining: Vec<Fraction> = combining.iter().map(cost).collect();
    let mut value = Fraction::ZERO;
    for root in file["roots"].as_array().unwrap() {
        let (from, targets) = (index(&root["root"]), indices(&root["targets"]));
        if let Some(cuts) = root["cuts"].as_array() {
            let cuts: Vec<(Vec<usize>, Fraction)> = cuts
                .iter()
                .map(|cut| (indices(&cut["nodes"]), number(&cut["value"])))
                .collect();
            for (nodes, value) in &cuts {
                holds &= *value >= Fraction::ZERO && !nodes.contains(&from);
                holds &= targets.iter().any(|target| nodes.contains(target));
            }
            for (src, dst, cost) in &costs {
                let entered = cuts
                    .iter()
                    .filter(|(set, _)| set.contains(dst) && !set.contains(src));
                holds &= total(entered.map(|(_, value)| value.clone())) <= *cost;
            }
            value += total(cuts.into_iter().map(|(_, value)| value));
        } else if root["potentials"].is_array() {
            let far = numbers(&root["potentials"]);
            holds &= far[from].is_zero();
            for (src, dst, cost) in &costs {
                holds &= far[*dst] <= &far[*src] + cost;
            }
            value += total(targets.iter().map(|&target| far[target].clone()));
        } else {
            let proof = &root["partial_results"];
            let rows = proof["rows"].as_array().unwrap();
            let table: Vec<Vec<Fraction>> = rows.iter().map(|row| numbers(&row["costs"])).collect();
            for own in proof["single"].as_array().unwrap() {
                holds &= table[index(&own[0])][index(&own[1])] <= Fraction::ZERO;
            }
            // A multicast is a way to combine what the targets have, against the links.
            let turned = combining.is_empty() && file["collective"] == "multicast";
            for (row, far) in rows.iter().zip(&table) {
                for (src, dst, cost) in &costs {
                    let (src, dst) = if turned { (dst, src) } else { (src, dst) };
                    holds &= far[*dst] <= &far[*src] + cost;
                }
                for parts in row["made_of"].as_array().unwrap() {
                    let (a, b) = (&table[index(&parts[0])], &table[index(&parts[1])]);
                    for (v, least) in far.iter().enumerate() {
                        let made = combining.get(v).cloned().unwrap_or_default();
                        holds &= *least <= &a[v] + &b[v] + made;
                    }
                }
            }
            value += table[index(&proof["all"])][from].clone();
        }
    }
    holds && value >= Fraction::ONE
}

/// Asserts that the check refuses the file with any one of its numbers changed, its routes cut
/// short or its matchings doubled.
fn assert_no_change_passes(file: &Value, what: &str) {
    let changes: [fn(&mut Value); 10] = [
        |file| file["throughput"] = "1/1000".into(),
        |file| file["bound"] = "1000".into(),
        |file| file["links"][0]["price"] = "-1".into(),
        |file| file["links"][0]["cost"] = "1/1000".into(),
        |file| file["port_prices"][0] = "1000".into(),
        |file| file["routes"][0]["rate"] = "1/1000".into(),
        |file| file["matchings"][0]["share"] = "2".into(),
        |file| {
            let activities = file["matchings"][0]["activities"].as_array_mut().unwrap();
            activities.push(activities[0].clone());
        },
        |file| file["platform"]["edges"][0]["cost"] = "1/1000".into(),
        |file| match file["routes"][0]["trees"].as_array_mut().unwrap() {
            trees if trees.is_empty() => {
                file["routes"][0]["tasks"].as_array_mut().unwrap().pop();
            }
            trees => {
                trees[0]["links"].as_array_mut().unwrap().pop();
                trees[0]["messages"].as_array_mut().unwrap().pop();
            }
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut changed = file.clone();
        change(&mut changed);
        let error = Solution::checked(&changed.to_string()).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Wrong(_)),
            "{what} {i}: {error}"
        );
    }
}

/// Every certificate proves the throughput, and no longer does if a number is made smaller that the
/// proof needs.
#[test]
fn anybody_can_check_the_file_of_a_certificate() {
    let mut kinds = std::collections::BTreeSet::new();
    for name in ["fig3", "clustered:2x3", "grid:2x3", "random:6:18"] {
        for operation in Operation::ALL {
            for ports in [Ports::BI, Ports::UNI] {
                let platform = generate(name, 3).unwrap();
                let n = platform.nodes();
                let edges = platform.edges().to_vec();
                let targets = (operation == Operation::Multicast).then(|| vec![1, n - 1]);
                let platform = Platform::new(n, 0, targets, edges).unwrap();
                let combines = matches!(operation, Operation::Reduce | Operation::ReduceOrdered);
                let compute = if combines {
                    vec![Fraction::ONE; n]
                } else {
                    Vec::new()
                };
                let platform = platform.with_compute(compute).unwrap();
                let Ok(solution) = solve(&platform, operation, ports, SolveMethod::Ports) else {
                    continue;
                };
                let Some(text) = solution.certificate_json() else {
                    assert!(solution.certificate.is_none());
                    continue;
                };
                let what = format!("{name} {operation:?} {ports:?}");
                let mut file: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(number(&file["bound"]), solution.throughput, "{what}");
                assert!(proves(&file), "{what}");
                for kind in ["cuts", "potentials", "partial_results"] {
                    kinds.extend(file["roots"][0].get(kind).map(|_| kind));
                }
                let checked = Solution::checked(&text).unwrap();
                assert_eq!(checked.throughput, solution.throughput, "{what}");
                assert_eq!(checked.routes, solution.routes, "{what}");
                assert_no_change_passes(&file, &what);
                // A throughput that is too small, and links that cost nothing, are not proved.
                let honest = file.clone();
                let less = number(&file["bound"]) * parse_fraction("9/10").unwrap();
                file["bound"] = Value::String(less.to_string());
                assert!(!proves(&file), "{what}");
                file = honest;
                for link in file["links"].as_array_mut().unwrap() {
                    link["cost"] = Value::String("0".into());
                }
                for node in file["combining"].as_array_mut().unwrap() {
                    node["cost"] = Value::String("0".into());
                }
                assert!(!proves(&file), "{what}");
            }
        }
    }
    assert_eq!(kinds.len(), 3);
}

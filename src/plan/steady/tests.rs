use super::*;
use crate::cost::Ports;

fn throughput(name: &str, operation: Operation, ports: Ports, method: Method) -> String {
    let platform = generate(name, 0).unwrap();
    let solution = solve(&platform, operation, ports, method).unwrap();
    show_fraction(&solution.throughput)
}

#[test]
fn known_throughputs() {
    let of = |name: &str, operation, ports| throughput(name, operation, ports, Method::Ports);
    use Operation::{Broadcast, Reduce};
    assert_eq!(of("fig3", Broadcast, Ports::BI), "1");
    assert_eq!(of("fig3", Broadcast, Ports::UNI), "2/3");
    assert_eq!(of("ring:3", Broadcast, Ports::BI), "1");
    assert_eq!(of("ring:3", Broadcast, Ports::UNI), "1/2");
    let complete = [(3, "1/2"), (4, "2/3"), (5, "1/2"), (6, "3/5"), (8, "4/7")];
    for (n, expected) in complete {
        let name = format!("complete:{n}");
        assert_eq!(of(&name, Reduce, Ports::UNI), expected, "{name}");
    }
}

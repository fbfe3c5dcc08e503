//! x
use oneport::measure::Profile;
fn main() {
    let p = Profile::from_json(&std::fs::read_to_string("/tmp/prof.json").unwrap()).unwrap();
    let c = p.cost().unwrap();
    let crowd = p.crowd(2).unwrap();
    println!("{crowd:?}");
    for (k, ranks, m) in [(oneport::Kind::Reduce, 8, 2usize), (oneport::Kind::Reduce, 16, 2), (oneport::Kind::Allreduce, 16, 2), (oneport::Kind::ReduceScatter, 16, 16), (oneport::Kind::Broadcast, 16, 16384), (oneport::Kind::Scatter, 8, 1048576/8)] {
    let mut r = oneport::Request::new(ranks, m); r.element_bytes = 4; r.cost = c.clone();
    println!("{k:?} {ranks} {m}");
    for a in oneport::plan::registry::of(k) { if let Ok(x) = oneport::plan::auto::crowded(a, &r, &crowd) { println!("   {} {} {}", a.name, x.request.segments.count(), x.time); } }
    }
}

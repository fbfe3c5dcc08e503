//! Tests of HdrHistogram's text form.

use hdrhistogram::Histogram;
use oneport_measure::percentile_distribution;

#[test]
fn the_text_has_the_standard_form() {
    let mut values = Histogram::<u64>::new(3).unwrap();
    for i in 1..=1000 {
        values.record(i).unwrap();
    }
    let text = percentile_distribution(&values);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "       Value     Percentile TotalCount 1/(1-Percentile)"
    );
    assert_eq!(lines[1], "");
    assert_eq!(
        lines[2],
        "       1.000 0.000000000000          1           1.00"
    );
    let (body, foot) = lines[2..].split_at(lines.len() - 5);
    assert_eq!(
        *body.last().unwrap(),
        "    1000.000 1.000000000000       1000"
    );
    let mut last = (0.0, -1.0, 0.0);
    for line in body {
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map(|x| x.parse().unwrap())
            .collect();
        let now = (numbers[0], numbers[1], numbers[2]);
        assert!(
            now.0 >= last.0 && now.1 > last.1 && now.2 >= last.2,
            "{line}"
        );
        assert!(numbers.len() == 4 || now.1 == 1.0);
        last = now;
    }
    assert_eq!(
        foot,
        [
            "#[Mean    =      500.500, StdDeviation   =      288.675]",
            "#[Max     =     1000.000, Total count    =         1000]",
            &format!(
                "#[Buckets = {:>12}, SubBuckets     =         2048]",
                values.buckets()
            ),
        ]
    );
    let empty = percentile_distribution(&Histogram::new(3).unwrap());
    assert!(empty.contains("Total count    =            0]"), "{empty}");
}

//! HdrHistogram's text form of a distribution of times.

use std::fmt::Write;

use hdrhistogram::Histogram;

/// Number of lines for each halving of the distance to 100%, the default of other implementations.
const TICKS: u32 = 5;

/// Formats the percentile distribution of `values` in HdrHistogram's standard text form.
///
/// Each line has a value, its percentile (as a fraction), the cumulative count and
/// `1 / (1 - percentile)`. The last lines have the mean, the standard deviation, the maximum and
/// the count.
///
/// ```
/// let mut times = hdrhistogram::Histogram::<u64>::new(3).unwrap();
/// times.record_n(1000, 99).unwrap();
/// times.record(5000).unwrap();
/// let text = oneport_measure::percentile_distribution(&times);
/// assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
/// assert!(text.contains("    1000.000 0.500000000000         99           2.00\n"));
/// ```
pub fn percentile_distribution(values: &Histogram<u64>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for step in values.iter_quantiles(TICKS) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to(), step.quantile_iterated_to());
        let _ = write!(text, "{value:>8}.000 {quantile:.12} {count:>10}");
        let _ = if quantile < 1.0 {
            writeln!(text, " {:>14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(text)
        };
    }
    let sub_buckets = 2 * 10u64.pow(u32::from(values.sigfig()));
    let _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>8}.000, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]",
        values.mean(),
        values.stdev(),
        values.max(),
        values.len(),
        values.buckets(),
        sub_buckets.next_power_of_two()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

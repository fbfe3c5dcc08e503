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

//! Comparison of observations with probabilities.

/// Returns the mean of the numbers, its standard error, and the standard deviation.
pub(crate) fn mean_and_errors(numbers: &[f64]) -> (f64, f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt(), variance.sqrt())
}

/// Number of trials, and in how many of them something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) yes: u64,
    pub(crate) trials: u64,
}

impl Count {
    pub(crate) fn record(&mut self, yes: bool) {
        self.yes += u64::from(yes);
        self.trials += 1;
    }

    /// Returns the difference between the observed share and a probability in standard errors of
    /// the binomial distribution.
    pub(crate) fn errors_from(self, probability: f64) -> f64 {
        let trials = self.trials as f64;
        let error = (probability * (1.0 - probability) / trials).sqrt();
        // The standard error for a probability of 0 or 1 is 0.
        (self.yes as f64 / trials - probability) / error.max(1e-12)
    }

    /// Asserts that the difference is at most four standard errors.
    pub(crate) fn assert_near(self, probability: f64, what: &str) {
        let errors = self.errors_from(probability);
        println!(
            "{what}: {} of {} seen, {probability:.6} predicted, {errors:+.2} standard errors",
            self.yes, self.trials
        );
        assert!(errors.abs() < 4.0, "{what}: {self:?}, {probability} predicted");
    }
}

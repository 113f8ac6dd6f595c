//! A series of any length as one line of blocks.

/// Collects a series in bounded memory: neighbours are merged to the larger of the two when there
/// are too many values.
#[derive(Debug)]
pub(super) struct Sparkline {
    values: Vec<f64>,
    /// Number of values of the series per kept value.
    each: usize,
    /// Number of values in the last one.
    in_last: usize,
}

/// Largest number of columns.
const COLUMNS: usize = 64;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Default for Sparkline {
    fn default() -> Self {
        Self { values: Vec::new(), each: 1, in_last: 1 }
    }
}

impl Sparkline {
    /// Appends a value.
    pub(super) fn push(&mut self, value: f64) {
        if self.in_last < self.each
            && let Some(last) = self.values.last_mut()
        {
            *last = last.max(value);
            self.in_last += 1;
            return;
        }
        if self.values.len() == COLUMNS {
            self.values = self.values.chunks(2).map(|pair| pair[0].max(pair[1])).collect();
            self.each *= 2;
        }
        self.values.push(value);
        self.in_last = 1;
    }

    /// The line, from 0 to the largest value, in at most `room` columns; empty if there are fewer
    /// than two values.
    pub(super) fn draw(&self, room: Option<usize>) -> String {
        let each = self.values.len().div_ceil(room.unwrap_or(COLUMNS).max(1)).max(1);
        let values = self.values.chunks(each);
        let values: Vec<f64> =
            values.map(|near| near.iter().copied().fold(0.0, f64::max)).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        if values.len() < 2 || most <= 0.0 {
            return String::new();
        }
        let block = |value: f64| BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1];
        values.into_iter().map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(values: impl IntoIterator<Item = f64>) -> String {
        let mut line = Sparkline::default();
        values.into_iter().for_each(|value| line.push(value));
        line.draw(None)
    }

    #[test]
    fn a_ramp_is_drawn_as_a_ramp() {
        assert_eq!(draw((1..=8).map(f64::from)), "▁▂▃▄▅▆▇█");
        assert_eq!(draw([]), "");
        assert_eq!(draw([0.0, 0.0]), "");
    }

    #[test]
    fn long_series_stay_short_and_keep_their_peaks() {
        let mut values = vec![1.0; 10_000];
        values[5_000] = 8.0;
        let line = draw(values);
        assert!(line.chars().count() <= COLUMNS);
        assert_eq!(line.chars().filter(|&c| c == '█').count(), 1);
    }
}

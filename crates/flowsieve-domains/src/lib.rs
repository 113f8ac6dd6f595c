//! Finds the registered domain of a name, by the [Public Suffix List](https://publicsuffix.org).
//!
//! The text of the list is compiled in. It is indexed at its first use, which takes about a
//! millisecond.

use hashbrown::HashMap;
use std::sync::LazyLock;

const LIST: &str = include_str!("suffixes.txt");

/// Number of labels of the longest rule.
const LABELS: usize = 7;

/// The rules of the list about a name.
#[derive(Clone, Copy, Default)]
struct Rules {
    /// The name is a public suffix.
    is_suffix: bool,
    /// Every name with one label more is a public suffix, unless it is an exception.
    has_wildcard: bool,
    /// The name is no public suffix, although its parent has a wildcard.
    is_exception: bool,
}

static RULES: LazyLock<HashMap<&[u8], Rules, ahash::RandomState>> = LazyLock::new(|| {
    let mut rules: HashMap<&[u8], Rules, _> = HashMap::default();
    for line in LIST.lines().filter(|line| !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("*.") {
            rules.entry(name.as_bytes()).or_default().has_wildcard = true;
        } else if let Some(name) = line.strip_prefix('!') {
            rules.entry(name.as_bytes()).or_default().is_exception = true;
        } else {
            rules.entry(line.as_bytes()).or_default().is_suffix = true;
        }
    }
    rules
});

/// Returns the part of a name that somebody registered: its public suffix and one more label, or
/// `None` if the name is nothing but a public suffix.
///
/// The name is text in small letters, without a final dot. Takes time in proportion to its length.
///
/// ```
/// assert_eq!(flowsieve_domains::registered(b"www.example.co.uk"), Some(&b"example.co.uk"[..]));
/// assert_eq!(flowsieve_domains::registered(b"co.uk"), None);
/// ```
pub fn registered(name: &[u8]) -> Option<&[u8]> {
    let end = name.len().checked_sub(suffix_of(name).len() + 1)?;
    let start = name[..end].iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
    (start < end).then(|| &name[start..])
}

/// Returns the public suffix of a name: the longest that a rule gives, or else the last label.
fn suffix_of(name: &[u8]) -> &[u8] {
    let dots = name.iter().enumerate().rev().filter(|&(_, &byte)| byte == b'.');
    // No rule looks at the labels before this dot.
    let start = dots.map(|(at, _)| at + 1).nth(LABELS - 1).unwrap_or(0);
    let (mut rest, mut rules) = (&name[start..], rules_of(&name[start..]));
    while let Some(dot) = rest.iter().position(|&byte| byte == b'.') {
        let parent = &rest[dot + 1..];
        let of_parent = rules_of(parent);
        if rules.is_exception {
            return parent;
        }
        if rules.is_suffix || of_parent.has_wildcard {
            return rest;
        }
        (rest, rules) = (parent, of_parent);
    }
    rest
}

fn rules_of(name: &[u8]) -> Rules {
    RULES.get(name).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> impl Iterator<Item = &'static str> {
        LIST.lines().filter(|line| !line.starts_with("//"))
    }

    /// The algorithm of the list's authors, rule by rule.
    fn by_definition(name: &str) -> Option<String> {
        let labels: Vec<&str> = name.split('.').rev().collect();
        let matches = |rule: &str| {
            let rule: Vec<&str> = rule.split('.').rev().collect();
            let fits = |(rule, label): (&&str, &&str)| *rule == "*" || rule == label;
            rule.len() <= labels.len() && rule.iter().zip(&labels).all(fits)
        };
        let exception = lines().filter_map(|line| line.strip_prefix('!')).find(|it| matches(it));
        let by_rules = || {
            let rules = lines().filter(|line| !line.starts_with('!') && matches(line));
            rules.map(|rule| rule.split('.').count()).max().unwrap_or(1)
        };
        let suffix = exception.map_or_else(by_rules, |rule| rule.split('.').count() - 1);
        let own = labels.get(..=suffix)?;
        Some(own.iter().rev().copied().collect::<Vec<_>>().join("."))
    }

    fn as_text(name: &str) -> Option<String> {
        registered(name.as_bytes()).map(|own| String::from_utf8_lossy(own).into_owned())
    }

    #[test]
    fn names_have_the_domains_that_the_list_means() {
        for (name, domain) in [
            ("com", None),
            ("example.com", Some("example.com")),
            ("a.b.example.com", Some("example.com")),
            ("unlisted", None),
            ("a.b.unlisted", Some("b.unlisted")),
            ("uk.com", None),
            ("b.example.uk.com", Some("example.uk.com")),
            ("test.ac", Some("test.ac")),
            ("c.mm", None),
            ("a.b.c.mm", Some("b.c.mm")),
            ("kobe.jp", Some("kobe.jp")),
            ("c.kobe.jp", None),
            ("a.b.c.kobe.jp", Some("b.c.kobe.jp")),
            ("www.city.kobe.jp", Some("city.kobe.jp")),
            ("ck", None),
            ("www.www.ck", Some("www.ck")),
            ("test.k12.ak.us", Some("test.k12.ak.us")),
            ("www.食狮.公司.cn", Some("食狮.公司.cn")),
            ("shishi.xn--55qx5d.cn", Some("shishi.xn--55qx5d.cn")),
            ("xn--fiqs8s", None),
        ] {
            assert_eq!(as_text(name).as_deref(), domain, "{name}");
        }
    }

    #[test]
    fn no_rule_has_more_labels_than_are_looked_at() {
        assert_eq!(lines().map(|line| line.split('.').count()).max(), Some(LABELS));
    }

    #[test]
    fn names_that_are_no_names_are_answered() {
        for name in ["", ".", "..", "com.", ".com", "a..com"] {
            let _ = as_text(name);
        }
    }

    proptest! {
        #[test]
        fn every_name_has_the_domain_of_the_definition(
            rule in any::<prop::sample::Index>(),
            labels in prop::collection::vec("[a-z]{1,3}|www|city", 0..4),
        ) {
            let rules: Vec<&str> = lines().collect();
            let rule = rule.get(&rules).trim_start_matches(['!', '*', '.']);
            let name = labels.iter().map(String::as_str).chain([rule]).collect::<Vec<_>>().join(".");
            prop_assert_eq!(as_text(&name), by_definition(&name));
        }
    }
}

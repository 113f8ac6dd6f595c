//! Which of several inputs each of the next packets comes from: a tournament of their times.

/// Inputs that have packets in a stretch of time, and those packets' order. Of equal times the
/// input at the lower place goes first; a packet that is earlier than the one before it in its input
/// follows that one.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) members: Vec<Member>,
    /// A key for each packet, one input after the other, with [`NEVER`] behind each. Keys compare as
    /// times do, and those of one time as numbers of members.
    keys: Vec<u64>,
    /// A binary tree: each node has the lesser of the two below it, and the root is number 1.
    nodes: Vec<u64>,
    /// Number of the node of member 0.
    leaves: usize,
    /// Bits of a key that have the number of the member.
    bits: u32,
    first_ns: i64,
}

/// An input with packets in the stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its place among the open inputs.
    pub(super) place: usize,
    pub(super) packets: usize,
    /// Where the key of its next packet is.
    next: usize,
}

/// Later than every packet.
const NEVER: u64 = u64::MAX;

impl Order {
    /// Begins a stretch of up to `inputs` inputs at the time of its first packet; returns its last
    /// possible time.
    pub(super) fn begin(&mut self, first_ns: i64, inputs: usize) -> i64 {
        self.members.clear();
        self.keys.clear();
        self.first_ns = first_ns;
        self.bits = inputs.next_power_of_two().ilog2().max(1);
        first_ns.saturating_add((NEVER >> self.bits).cast_signed() - 1)
    }

    /// Adds an input, behind those at lower places, with its packets up to this time; returns their
    /// number.
    pub(super) fn add(
        &mut self,
        place: usize,
        times_ns: impl Iterator<Item = i64>,
        until_ns: i64,
    ) -> usize {
        let next = self.keys.len();
        let member = self.members.len() as u64;
        let mut latest_ns = self.first_ns;
        for time_ns in times_ns {
            latest_ns = latest_ns.max(time_ns);
            if latest_ns > until_ns {
                break;
            }
            let since = latest_ns.wrapping_sub(self.first_ns).cast_unsigned();
            self.keys.push(since << self.bits | member);
        }
        let packets = self.keys.len() - next;
        self.keys.push(NEVER);
        self.members.push(Member { place, packets, next });
        packets
    }

    /// Puts the packets of all members in order.
    pub(super) fn start(&mut self) {
        self.leaves = self.members.len().next_power_of_two().max(2);
        self.nodes.clear();
        self.nodes.resize(2 * self.leaves, NEVER);
        for (member, leaf) in self.members.iter().zip(&mut self.nodes[self.leaves..]) {
            *leaf = self.keys[member.next];
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// Returns the number of the member that the next packet comes from.
    #[inline]
    fn first(&self) -> Option<usize> {
        let key = self.nodes[1];
        (key != NEVER).then_some((key & ((1 << self.bits) - 1)) as usize)
    }

    /// Steps over the next packet, and returns the member that it comes from.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Member> {
        let number = self.first()?;
        let member = &mut self.members[number];
        member.next += 1;
        let mut least = self.keys[member.next];
        let mut node = self.leaves + number;
        while node > 1 {
            self.nodes[node] = least;
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
        }
        self.nodes[1] = least;
        Some(*member)
    }

    /// Steps over the next packets of one input, and returns its place and their number.
    pub(super) fn next_run(&mut self) -> Option<(usize, usize)> {
        let number = self.first()?;
        let mut packets = 0;
        while self.first() == Some(number) {
            self.next();
            packets += 1;
        }
        Some((self.members[number].place, packets))
    }
}

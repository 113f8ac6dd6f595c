#!/usr/bin/env python3
"""A second implementation of the filter that halves what it watches, slow and from its definition: makes halving.tsv.

    crates/flowsieve-filters/tests/vectors/halving.py > crates/flowsieve-filters/tests/vectors/halving.tsv

A line is a moment of one filter: its lines, bits of a word, k, elements so far (every third one a repeat of an earlier
one), then stage, elements called new, set bits of the whole array, a digest of its words, the limit of the last stage,
and count and variance as the bits of their floating-point numbers.
"""

import struct

WORD = (1 << 64) - 1
CASES = (
    # lines, bits of a word, k, elements at which the state is written
    (8, 8, 4, (1, 30, 100, 400, 3000, 40000)),
    (9, 11, 4, (50, 900, 5000, 40000)),
    (24, 8, 2, (100, 3000, 30000)),
    (64, 8, 4, (100, 2000, 9000, 60000)),
    (66, 15, 5, (1000, 9000, 60000)),
    (64, 32, 3, (3000, 20000, 100000)),
    (64, 64, 4, (1000, 14000, 17000, 90000, 200000)),
    (64, 64, 8, (9000, 60000)),
    (71, 64, 4, (16000, 100000)),
)


def number(seed):
    """SplitMix64: the digest of an element."""
    seed = (seed + 1) * 0x9E3779B97F4A7C15 & WORD
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & WORD
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EB & WORD
    return seed ^ seed >> 31


def scrambled(digest, multipliers):
    for multiplier in multipliers:
        digest = digest * multiplier & WORD
        digest ^= digest >> 32
    return digest


def digit(fraction, base, n):
    """The n-th digit (from 0 on) of a fraction of 2^64."""
    return (fraction * base**n % 2**64) * base >> 64


class Halving:
    def __init__(self, lines, part, k):
        self.k = k
        self.part = part
        self.block = 8 * part  # bits
        self.stages = min(lines.bit_length() - 1, 6)
        self.L = lines
        # Generations are lists of lines, each a whole number; kept apart here.
        self.generations = [[0] * self.L]
        self.seen, self.mu, self.var = 0, 0.0, 0.0
        self.limit = 1 << 32

    @property
    def t(self):
        return len(self.generations) - 1

    def places(self, digest):
        """The first part and the mask of the element in a line of generation 0."""
        bits = scrambled(digest, (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
        first, mask = bits >> 61, 0
        for step in range(self.k):
            part = (first + step) % 8
            if self.part == 64:
                place = bits >> 6 * part & 63
            else:
                place = digit(bits << 3 & WORD, self.part, part)
            mask |= 1 << part * self.part + place
        return first, mask

    def later_place(self, digest, g):
        bits = scrambled(digest, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
        if self.part == 64:
            return 1 << (bits >> 9 * (g - 1)) % self.block
        return 1 << digit(bits, self.block, g - 1)

    def line(self, digest, g):
        return digest * (self.L << max(g - 1, 0)) >> 64

    def window_counts(self, block):
        mask = (1 << self.part) - 1
        return [(block >> self.part * p & mask).bit_count() for p in range(8)]

    def full(self, block):
        counts, total = self.window_counts(block), 0
        for first in range(8):
            product = 1
            for step in range(self.k):
                product *= counts[(first + step) % 8]
            total += product
        return total

    def weight(self, line):
        t, everything = self.t, 8 * self.part ** self.k
        weight = ((everything - self.full(self.generations[0][line >> t - 1])) << 32) // everything
        for g in range(1, t):
            clear = self.block - self.generations[g][line >> t - g].bit_count()
            weight = weight * clear // self.block
        return weight

    def global_q(self):
        written = self.generations[-1]
        if self.t == 0:
            everything = 8 * self.part ** self.k
            clear = sum(everything - self.full(block) for block in written)
            return clear / len(written) / everything * (self.limit / 2**32)
        sampled = len(self.generations[0]) / self.L
        return self.S / len(written) * (sampled / (2**32 * self.block)) * (self.limit / 2**32)

    def q(self, digest):
        """Probability that a new element is seen, in the present state; and that it is not."""
        if self.t == 0 and self.block == 512:
            counts = self.window_counts(self.generations[0][self.line(digest, 0)])
            first, product = self.places(digest)[0], 1
            for step in range(self.k):
                product *= counts[(first + step) % 8]
            everything = self.part ** self.k
            return (everything - product) / everything, product / everything
        q = self.global_q()
        return q, 1.0 - q

    def insert(self, digest):
        if self.line(digest, 0) >= len(self.generations[0]) or digest % 2**32 >= self.limit:
            return None
        for g, generation in enumerate(self.generations):
            mask = self.later_place(digest, g) if g else self.places(digest)[1]
            if generation[self.line(digest, g)] & mask == mask:
                return False
        q, u = self.q(digest)
        line = self.line(digest, self.t)
        written = self.generations[-1]
        before = written[line].bit_count()
        written[line] |= mask
        self.ones += written[line].bit_count() - before
        if self.t:
            self.S -= self.weight(line)
        self.seen += 1
        self.mu += u / q
        self.var += u / q * (1 + u / q)
        self.lower_limit()
        while self.t < self.stages and 100 * self.ones >= (60 if self.t else 86) * len(written) * self.block:
            self.halve()
            written = self.generations[-1]
        return True

    ones = 0

    def lower_limit(self):
        if self.t < self.stages or self.S == 0:
            return
        clear = len(self.generations[-1]) * self.block - self.ones
        unlimited = self.global_q() / (self.limit / 2**32)
        share = 0.15 * clear / ((self.seen + self.mu) * unlimited)
        self.limit = min(self.limit, max(1, int(share * 2**32)))

    def halve(self):
        kept = len(self.generations[0]) // 2
        older = [generation[: kept << max(g - 1, 0)] for g, generation in enumerate(self.generations)]
        self.generations = older + [[0] * (kept << len(older) - 1)]
        self.ones = 0
        self.S = sum(self.block * self.weight(line) for line in range(len(self.generations[-1])))
        self.lower_limit()

    def words(self):
        """The array: the generations one after the other."""
        whole = 0
        for at, block in enumerate(block for generation in self.generations for block in generation):
            whole |= block << at * self.block
        for at in range(-(-self.L * self.block // 64)):
            yield whole >> 64 * at & WORD


def bits(value):
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


def main():
    print("lines\tword_bits\tk\telements\tstage\tnew\tset\twords\tlimit\tcount\tvariance")
    for lines, part, k, moments in CASES:
        filter_, seed = Halving(lines, part, k), lines << 32 | k << 24
        for element in range(max(moments)):
            which = number(~seed + element & WORD) % (element + 1) if element % 3 == 2 else element
            filter_.insert(number(seed + which))
            if element + 1 in moments:
                digest, ones = 0, 0
                for word in filter_.words():
                    digest = number(digest ^ word)
                    ones += word.bit_count()
                print(lines, part, k, element + 1, filter_.t, filter_.seen, ones, f"{digest:016x}", filter_.limit,
                      bits(filter_.seen + filter_.mu), bits(filter_.var), sep="\t")


main()

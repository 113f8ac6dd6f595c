"""Uses of the package that type checkers follow; it is not run."""

import datetime

import flowsieve as fs

counted = fs.count(["a.pcap", "b.pcap"], slice=datetime.timedelta(seconds=1), element="flow", dns_port=[5353, 5354])
packets: int = counted.totals.packets
where: str | None = counted.parameters.where
errors: list[str | None] = [one.error for one in counted.inputs]
with fs.flows("a.pcap") as listed:
    tables: list[fs.Table] = list(listed.flows)
    flows: int = listed.totals.flows
made = fs.Filter("cmdbf", attributes=["src", "dst"])
made.insert([1], [2])
bounds = made.estimate()
if bounds is not None:
    upper: int = bounds.upper
index = fs.Index("archive")
names: list[str] = index.search(src="10.0.0.1").rows.column_names

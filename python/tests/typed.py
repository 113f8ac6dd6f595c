"""Uses of the package that type checkers follow; it is not run."""

import datetime
import ipaddress
import zoneinfo
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import flowsieve as fs
from flowsieve import pieces

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
    upper: int | None = bounds.upper
slices: fs.Table = counted.slices
column: list[object] = slices["exact"]
some: fs.Table = slices[["start", "exact"]][2:4].head(1)
row: dict[str, object] = slices[0]
rows, columns = slices.shape
for later in fs.count("folder", follow=True).slices:
    print(later.schema["exact"])
for grows in (False, True):
    either: fs.Counts | fs.LiveCounts = fs.count("folder", follow=grows)
index = fs.Index("archive")
names: list[str] = index.search(src="10.0.0.1").rows.column_names
berlin: fs.Counts = fs.count("a.pcap", timezone=zoneinfo.ZoneInfo("Europe/Berlin"))
found: fs.Table = index.search(host=ipaddress.ip_address("10.0.0.1"), src=ipaddress.ip_network("10.0.0.0/8")).rows
of_numpy: fs.Counts = fs.count("a.pcap", expect=np.int64(5), to=np.datetime64("2030-01-01"), dns_port=[np.uint16(5353)])
with ProcessPoolExecutor() as pool:
    divided: fs.Counts = pieces.run("count", "a.pcap", submit=pool.submit, slice="1min")
    keys: fs.Table = pieces.run("top", "a.pcap", submit=pool.submit).keys
    shards: list[fs.Table] = pieces.run("flows", "a.pcap", submit=pool.submit).shards

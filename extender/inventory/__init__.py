"""The ledger: the only mutable cluster state, as tables with numpy columns, and immutable snapshots of it.

How to read a `Snapshot` (all arrays are read-only):

- `topology`: nodes by *slot* (`names[slot]`, `slot_of[name]`); devices by *row* (`table.ids[row]`,
  `facts[row]`, `devices[row]`). `order` lists the rows of devices in complete, valid, node-local pools, node
  by node and in the order in which kube-scheduler's allocator tries them; slot s has
  `order[starts[s]:starts[s + 1]]`. `per_node(mask over order)` counts by slot. `pools[name]` has a node's
  local pools whole, `wide` all others.
- `occupancy.taken` / `.shared`: bool by row. `held_by(device)`: holdings, with shares and consumed capacity.
- `nodes.allocatable[resource]`, `.used`, `.free(resource)`: int64 by slot, thousandths.
- `CodedColumn(read).over(topology.table)`: any property of all devices as small integers, kept up to date.

Never: I/O, a clock, a decision.
"""

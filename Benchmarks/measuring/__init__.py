"""The comparison of Alight with other programs.

`figures` and `tables` are pure. `processes` measures processes, `records` the actions; `systems` and `peers` define how
each program is started; `rounds` lets them take turns; `scenarios` defines the tasks.
"""

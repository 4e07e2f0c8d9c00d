"""How Alight is measured beside other programs.

`figures` and `tables` are pure. `processes` and `records` are about what runs and what was done; `systems` and `peers`
say how each program is started; `rounds` lets them take turns; `scenarios` are what is asked of them.
"""

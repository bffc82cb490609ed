"""The decision about broken rules and gates: policy, findings, changes of the contract, the verdict."""

"""What becomes of broken rules and gates: policy, findings, changes of the contract, the verdict."""

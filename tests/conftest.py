"""Settings of the test tools."""

from hypothesis import HealthCheck, settings

# No test asserts a time, hypothesis' own limits on an example included: a busy machine is no defect.
settings.register_profile("rag-contract", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rag-contract")

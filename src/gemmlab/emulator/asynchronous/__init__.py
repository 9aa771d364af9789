"""The asynchronous machine of sm_90: mbarriers, bulk copies, tensor maps and clusters."""

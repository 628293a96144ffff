"""From a solved pair to an explanation: who went where, at what cost, and what each unit adds."""

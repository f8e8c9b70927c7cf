# SPDX-License-Identifier: Apache-2.0
"""All cases of the drop-in, in order."""
import cases_async  # noqa: F401
import cases_binding  # noqa: F401
import cases_feeds  # noqa: F401
import cases_module  # noqa: F401
import cases_options  # noqa: F401
import cases_run  # noqa: F401
import cases_session  # noqa: F401
import cases_values  # noqa: F401

# SPDX-License-Identifier: Apache-2.0
"""The lab: kernels fetched by name, and the systems that are compared with them in virtual time."""

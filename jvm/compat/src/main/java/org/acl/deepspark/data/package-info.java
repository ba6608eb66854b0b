// SPDX-License-Identifier: Apache-2.0

/** The one class of DeepSpark's that its files name. */
package org.acl.deepspark.data;

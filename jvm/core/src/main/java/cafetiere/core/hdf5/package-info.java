// SPDX-License-Identifier: Apache-2.0
/** Datasets of HDF5 files of this machine. */
package cafetiere.core.hdf5;
